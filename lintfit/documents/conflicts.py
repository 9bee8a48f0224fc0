"""Markers that git leaves in a file where a merge is not resolved: no parser takes the file as it stands."""

from __future__ import annotations

import re

from lintfit.documents.model import SYNTAX_ERROR, Problem, Span
from lintfit.documents.patterns import lazy_pattern

_OPENS = lazy_pattern(r"^<{7} [^\r\n]*", re.MULTILINE)
_PARTS = lazy_pattern(r"^={7}[ \t]*\r?$", re.MULTILINE)
_CLOSES = lazy_pattern(r"^>{7} ", re.MULTILINE)

RESOLVE = "keep one of the two sides and delete the lines with the markers"


def conflict(text: str) -> Problem | None:
    """The first marker of a file that has all three of a conflict, in their order (``git merge``, how conflicts are
    presented)."""
    opens = _OPENS.search(text) if "\n>>>>>>> " in text else None
    parts = _PARTS.search(text, opens.end()) if opens is not None else None
    if opens is None or parts is None or _CLOSES.search(text, parts.end()) is None:
        return None
    return Problem(SYNTAX_ERROR, "an unresolved merge conflict", Span(*opens.span()))
