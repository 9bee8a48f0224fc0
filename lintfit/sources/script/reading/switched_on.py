"""Where a script's files let a parameter be trained, as the text has it: what the walk through them may not come by."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lintfit.sources.script.reading.calls import Calls

if TYPE_CHECKING:
    from lintfit.documents.python_reader import PythonDocument

SWITCHED_ON = re.compile(
    r"(?<!\boutput)\.requires_grad(?:\s*=(?!=)(?!\s*False\b)|_\((?!\s*(?:requires_grad\s*=\s*)?False\b))"
)
"""Anything but ``False``; what a hook does to the layers' input is about no parameter."""
_DEFINITION = re.compile(r"^([ \t]*)(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)


def switched_on(calls: Calls) -> Iterator[tuple[PythonDocument, int]]:
    """The files and offsets in them, but for functions that nobody calls."""
    for document in calls.documents:
        for match in SWITCHED_ON.finditer(document.text):
            name = _function_around(document.text, match.start())
            if name is None or _is_named(calls, name):
                yield document, match.start()


def _is_named(calls: Calls, name: str) -> bool:
    """Whether any file says more of a function than its definition."""
    word = re.compile(rf"\b{name}\b")
    return sum(len(word.findall(text)) for text in calls.texts()) > 1


def _function_around(text: str, offset: int) -> str | None:
    """The name of the function that a place is in, by the indentation."""
    start = text.rfind("\n", 0, offset) + 1
    for found in reversed(list(_DEFINITION.finditer(text, 0, start))):
        deeper = rf"\n(?!{found[1]}[ \t]|[ \t]*(?:\n|\)|#))"
        if re.search(deeper, text[found.end() : offset]) is None:
            return found[2]
    return None
