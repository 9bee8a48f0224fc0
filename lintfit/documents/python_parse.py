"""libcst's parser without the checks that it makes of nodes built by hand.

Each node of a tree checks itself when it is made: that names are not empty, that brackets match, that blanks are blank.
What the parser makes passes, and the checks take a third of its time.
"""

from __future__ import annotations

from typing import Final

import libcst as cst

from lintfit.documents.python_nodes import CHECKS, is_own

_CHECK: Final = cst.CSTNode.__post_init__
_OWN: Final = is_own(cst.CSTNode)
"""Whether nodes look at ``CHECKS``, rather than checking themselves always."""


def parse(text: str) -> cst.Module:
    """The tree of a text. Raises what ``libcst.parse_module`` raises of texts that are no Python."""
    if _OWN:
        CHECKS.clear()
    else:
        cst.CSTNode.__post_init__ = _unchecked  # type: ignore[assignment, method-assign]
    try:
        return cst.parse_module(text)
    finally:
        CHECKS[:] = [True]
        if not _OWN:
            cst.CSTNode.__post_init__ = _CHECK  # type: ignore[method-assign]


def _unchecked(node: cst.CSTNode) -> None:
    pass
