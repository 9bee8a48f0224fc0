"""Splicing edits into a text."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from lintfit.documents.lines import line_end, rest_is_blank
from lintfit.documents.model import Edit, Span

_ROOM = "   "
"""Blanks in front of a comment of which one can be done without."""


def overlaps(a: Edit, b: Edit) -> bool:
    """Whether two edits cannot both be applied: they share a character, or insert different texts at one place.

    Equal edits do not overlap: they are one edit.
    """
    if a == b:
        return False
    first, second = (a, b) if (a.span, a.text) <= (b.span, b.text) else (b, a)
    if first.span == second.span:
        return True
    return second.span.start < first.span.end


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text with every edit spliced in; equal edits count once.

    Raises ValueError where two edits overlap, insert at the same place, or reach beyond the text.
    """
    ordered = sorted(set(edits), key=lambda edit: (edit.span.start, edit.span.end, edit.text))
    parts: list[str] = []
    done = 0
    previous: Edit | None = None
    for edit in ordered:
        if previous is not None and overlaps(previous, edit):
            raise ValueError(f"edits overlap: {previous} and {edit}")
        if edit.span.end > len(text):
            raise ValueError(f"{edit} reaches beyond the text of {len(text)} characters")
        parts += (text[done : edit.span.start], edit.text)
        done, previous = edit.span.end, edit
    return "".join((*parts, text[done:]))


def added_below(text: str, last: int, comma: int | None, line: str) -> tuple[Edit, ...]:
    """Add an item on a line of its own below the last one of its bracket, which ends at ``last``.

    ``comma`` is where the comma behind it ends; the new one gets a comma where the last one has. A comment on the last
    one's line stays there, unless the closing bracket stands there, too.
    """
    after = comma if comma is not None else last
    end = line_end(text, after, breaks=False) if rest_is_blank(text, after) else after
    if comma is not None:
        return (Edit.insert(end, line + ","),)
    if end == last:
        return (Edit.insert(end, "," + line),)
    return (comma_in_line(text, last), Edit.insert(end, line))


def comma_in_line(text: str, end: int) -> Edit:
    """A comma behind an item, which leaves the comment behind it where it is if there is room."""
    return Edit(Span(end, end + 1), ",") if text.startswith(_ROOM, end) else Edit.insert(end, ",")


def unified_diff(path: Path | str, old: str, new: str) -> str:
    """A unified diff of two versions of a file, as ``patch -p0`` reads it; empty where they are equal."""
    name = _quoted(path.as_posix() if isinstance(path, Path) else path)
    lines: list[str] = []
    for line in _hunks(_lines(old), _lines(new), name):
        lines.append(line)
        if not line.endswith("\n"):
            lines.append("\n\\ No newline at end of file\n")
    return "".join(lines)


def _hunks(old: list[str], new: list[str], name: str) -> Iterator[str]:
    """As :func:`difflib.unified_diff`, which in files of 200 lines and more passes over the blank ones: what is moved
    then is the longest block without any, not what moved. In longer files it would take too long to look at these."""
    from difflib import SequenceMatcher

    autojunk = max(len(old), len(new)) > _WHOLE
    for group in SequenceMatcher(None, old, new, autojunk=autojunk).get_grouped_opcodes():
        if name:
            yield from (f"--- {name}\n", f"+++ {name}\n")
            name = ""
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        yield f"@@ -{_range(i1, i2)} +{_range(j1, j2)} @@\n"
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[i1:i2])
            else:
                yield from (f"-{line}" for line in old[i1:i2])
                yield from (f"+{line}" for line in new[j1:j2])


_WHOLE = 1000
"""Lines of a file of which every line is compared: where all are alike, a second."""


def _range(start: int, stop: int) -> str:
    """Lines as a hunk's head has them: the first and how many, of none the line before."""
    length = stop - start
    return str(start + 1) if length == 1 else f"{start + bool(length)},{length}"


def shown_diff(path: Path | str, old: str, new: str) -> str:
    """The same as it is printed: it steers no terminal, and no line is taken for a command of who runs the job. Where
    the file has such characters, which nobody has on purpose, it is no patch for it."""
    lines = unified_diff(path, old, new).split("\n")
    return "\n".join(map(_harmless, lines))


def _quoted(name: str) -> str:
    """A file's name as git writes it in a diff: in quotes, with escapes, where it holds what no name should."""
    if name.isprintable() and '"' not in name and "\\" not in name and not name.startswith(" "):
        return name
    escaped = (
        f"\\{byte:03o}" if byte < 32 or byte > 126 or byte in b'"\\' else chr(byte) for byte in os.fsencode(name)
    )
    return f'"{"".join(escaped)}"'


_STEERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_BEGINS_COMMAND = re.compile(r"\A[ \t]+(?=::)")


def _harmless(line: str) -> str:
    ending = "\r" if line.endswith("\r") else ""
    body = _STEERS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), line.removesuffix("\r"))
    return _BEGINS_COMMAND.sub(r"\g<0>\\", body.replace("##[", "##\\[")) + ending


def _lines(text: str) -> list[str]:
    # Only \n ends a line for git and patch; splitlines would also break at form feeds and U+2028.
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
