"""Files that a script takes its variables from: ``source common.sh``, ``. ./env.sh arguments``.

What they set is known in the script that reads them, but it is written elsewhere: such a value has no place here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lintfit.documents.model import FileText, Span
from lintfit.documents.shell_words import Fragment, Variable, Word

OpenText = Callable[[Path], FileText | None]
"""The text of a file; None where it cannot be read."""

MAX_SOURCED = 5
"""Files that are followed into one another."""


def candidates(script: Path, entered: str, name: str) -> Iterator[Path]:
    """Where a script finds a file by this name: as it is started from its own folder, or one above it."""
    path = Path(name)
    if path.is_absolute():
        yield path
        return
    yield path
    for folder in script.parents:
        yield Path(os.path.normpath(folder / entered / path))
        yield Path(os.path.normpath(folder / path))


def opened(open_text: OpenText, paths: Iterator[Path]) -> FileText | None:
    """The first of these files that is there."""
    return next((file for path in paths if (file := open_text(path)) is not None), None)


def taken_over(before: Mapping[str, Variable], after: Mapping[str, Variable], command: Span) -> dict[str, Variable]:
    """The variables after a file was read, those that it has set with ``command`` as their place."""
    return {
        name: variable if before.get(name) is variable else _placed(variable, command)
        for name, variable in after.items()
    }


def _placed(variable: Variable, command: Span) -> Variable:
    elements = tuple(_elsewhere(element, command) for element in variable.elements)
    return replace(variable, elements=elements, span=command, value_span=command)


def _elsewhere(element: Sequence[Fragment], command: Span) -> tuple[Fragment, ...]:
    return tuple(replace(part, origin=None if part.known else command, through=()) for part in element)


def arguments(words: Sequence[tuple[Word, tuple[Fragment, ...]]], command: Span) -> list[tuple[Fragment, ...]] | None:
    """What stands behind the file's name as the file's own arguments; None where there is nothing."""
    return [_elsewhere(fragments, command) for _, fragments in words] or None
