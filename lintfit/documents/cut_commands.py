"""Commands that end before their last flags: a backslash that does not end its line, a comment or an empty line between
two lines, a line without its backslash.

What was meant is plain, so the command is read as if nothing had cut it (the rule cut-off-command reports the cut).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from lintfit.documents.model import Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.documents.written_commands import STARTS, WORDS
from lintfit.frozen import frozen

_STARTS = lazy_pattern(rf"[ \t]*[@+-]*(?:{STARTS})")
_WHOLE = re.compile(r"\\\r?\n?$")
_LOOSE = re.compile(r"(?<!\\)(\\)[ \t]+(?:#[^\r\n]*)?(?=\r?\n)")
"""A backslash that escapes a blank in the place of the end of its line."""
_COMMENT = re.compile(r"[ \t]#")
_IDLE = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?:\r?\n)?$")
_FLAG = re.compile(r"[ \t]*--?[A-Za-z][\w.-]*(?![\w.-]*[ \t]*[|)])")
_LONG_FLAG = re.compile(r"[ \t]*--[A-Za-z][\w.-]*(?![\w.-]*[ \t]*[|)])")
"""A long one, which no line of a script begins with that is a command: make takes a ``-`` off, and ``case`` has
``--flag)``."""
_SCRIPT = re.compile(r"[ \t]*[\w./-]+\.py(?=\s|$)")


@frozen
class Cut:
    """A place at which a command ends too early.

    ``span`` is what ends it: the backslash, the first comment, or where a backslash is missing. ``joint`` is the
    stretch that parts the two lines. ``kind``: a blank behind the backslash, a comment or an empty line between the
    lines, or a line without a backslash.
    """

    kind: Literal["blank", "comment", "empty", "line"]
    span: Span
    joint: Span


def mended(text: str, ends_lines: Callable[[str, Cut], bool] | None = None) -> tuple[str, tuple[Cut, ...]]:
    """The text with its commands joined where they are cut, of the same length; and the cuts, in order.

    ``ends_lines`` says of a cut whether the shell sees the ends of lines there (:func:`in_literals`).
    """
    found = tuple(_cuts(text)) if any(word in text for word in WORDS) else ()
    if ends_lines is not None:
        found = tuple(cut for cut in found if ends_lines(text, cut))
    parts, position = [], 0
    for cut in found:
        parts += [text[position : cut.joint.start], " " * (cut.joint.end - cut.joint.start)]
        position = cut.joint.end
    return "".join([*parts, text[position:]]), found


def _cuts(text: str) -> Iterator[Cut]:
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    index = 0
    while index < len(lines):
        if _STARTS.match(lines[index]) is None:
            index += 1
            continue
        while index < len(lines):
            cut, following = _behind(lines, starts, index)
            if cut is not None:
                yield cut
            index = following if following is not None else index + 1
            if following is None:
                break


def _behind(lines: Sequence[str], starts: Sequence[int], index: int) -> tuple[Cut | None, int | None]:
    """What cuts a command at the end of one of its lines, and its next line; None where it has no other."""
    line, start = lines[index], starts[index]
    following = lines[index + 1] if index + 1 < len(lines) else ""
    loose = _LOOSE.search(line)
    if loose is None and _WHOLE.search(line):
        comment = _comment(line)
        if (
            comment is not None and line[: comment.start()].strip() and _FLAG.match(following)
        ):  # its backslash is a part of it
            span = Span(start + comment.end() - 1, start + len(line.rstrip()))
            return Cut("comment", span, Span(start + comment.start(), starts[index + 1])), index + 1
        if not _IDLE.match(following):
            return None, index + 1
        return _idle(lines, starts, index + 1)
    if loose is not None:
        if not _FLAG.match(following) and not _SCRIPT.match(following):
            return None, None
        return Cut("blank", _moved(loose.span(1), start), Span(start + loose.start(1), starts[index + 1])), index + 1
    end = _end(line)
    if end is None or not _LONG_FLAG.match(following):
        return None, None
    return Cut("line", Span(start + end, start + end), Span(start + end, starts[index + 1])), index + 1


def _comment(line: str) -> re.Match[str] | None:
    """The blank and the sign that a comment begins with, behind the last quote of a line."""
    return _COMMENT.search(line, max(line.rfind(quote) for quote in "\"'`") + 1)


def _end(line: str) -> int | None:
    """Where the words of a line end, in front of its comment; None where an operator joins it to the next."""
    comment = _comment(line)
    written = line[: comment.start() if comment is not None else None].rstrip()
    return len(written) if written and written[-1] not in ";&|({" else None


def _idle(lines: Sequence[str], starts: Sequence[int], first: int) -> tuple[Cut | None, int | None]:
    """A cut by the comments and empty lines behind a backslash, where a flag follows them."""
    last = first
    while last < len(lines) and _IDLE.match(lines[last]):
        last += 1
    if last == len(lines) or not _FLAG.match(lines[last]):
        return None, None
    comment = next((index for index in range(first, last) if lines[index].strip()), None)
    at = starts[first] if comment is None else starts[comment]
    written = "" if comment is None else lines[comment]
    span = Span(at + len(written) - len(written.lstrip()), at + len(written.rstrip()))
    return Cut("empty" if comment is None else "comment", span, Span(starts[first], starts[last])), last


def _moved(span: tuple[int, int], by: int) -> Span:
    return Span(span[0] + by, span[1] + by)


_HEADER = re.compile(r"(?:[:-]|^)[ \t]+(?P<mark>[|>])[-+0-9]*[ \t]*(?:#.*)?$")
_MOST_ABOVE = 20_000
"""Characters above a cut that are looked at for the head of its scalar."""


def in_literals(text: str, cut: Cut) -> bool:
    """Whether a cut of a YAML file stands in a literal block (``|``), whose lines the shell gets as they are: of any
    other scalar YAML makes one line before."""
    above = text[max(0, cut.joint.start - _MOST_ABOVE) : cut.joint.start].splitlines()
    inner = _indent(above.pop()) if above else 0
    for line in reversed(above):
        if not line.strip() or _indent(line) >= inner:
            continue
        head = _HEADER.search(line)
        if head is not None:
            return head["mark"] == "|"
        inner = _indent(line)
    return False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
