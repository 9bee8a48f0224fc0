"""Recipes of a justfile (https://just.systems/man): indented lines under a name, with ``{{variables}}``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lintfit.documents.jobs.model import Job, Said
from lintfit.documents.model import FileText, Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.written_commands import blank

_REFERENCE = lazy_pattern(r"\{\{[ ]*(?P<name>[A-Za-z_][\w-]*)[ ]*\}\}")
_SET = lazy_pattern(
    r"^(?:export[ ]+)?(?P<name>[A-Za-z_][\w-]*)[ ]*:=[ ]*(?:\"(?P<double>[^\"\n]*)\"|'(?P<single>[^'\n]*)')[ ]*$",
    re.MULTILINE,
)
_DEFAULT = lazy_pattern(r"(?<![\w-])(?P<name>[A-Za-z_][\w-]*)=(?:\"(?P<double>[^\"\n]*)\"|'(?P<single>[^'\n]*)')")
_LINE = lazy_pattern(r"^[ \t]+[@-]*")


def is_one(path: Path, text: str) -> bool:
    return path.name.lower() in ("justfile", ".justfile") or path.suffix == ".just"


def read(file: FileText) -> Iterator[Job]:
    common = {name: value for match in _SET.finditer(file.text) for name, value in _values(match)}
    head, position = "", 0
    kept: list[str] = []
    lines = file.text.splitlines(keepends=True)
    for index, line in enumerate((*lines, "\n\x00")):
        inside = line[:1] in (" ", "\t") or not line.strip()
        if not inside or index == len(lines):
            if any(each.strip() for each in kept):
                own = {name: value for match in _DEFAULT.finditer(head) for name, value in _values(match)}
                yield Job(" " * (position - sum(map(len, kept))) + "".join(kept), variables={**common, **own})
            head, kept = line, []
        else:
            found = _LINE.match(line)
            marks = found.end() if found is not None else 0
            kept.append(blank(line[:marks]) + _REFERENCE.sub(_shell, line[marks:]))
        position += len(line)


def _shell(match: re.Match[str]) -> str:
    """A reference in the shell's form, of the same length."""
    name = match["name"].replace("-", "_")
    return "${" + name + "_" * (len(match.group()) - len(name) - 3) + "}"


def _values(match: re.Match[str]) -> Iterator[tuple[str, Said]]:
    group = "double" if match["double"] is not None else "single"
    for more in (0, 1, 3):
        yield match["name"].replace("-", "_") + "_" * more, (match[group], Span(*match.span(group)))
