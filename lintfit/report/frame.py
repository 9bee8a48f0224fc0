"""Code frames: lines of a document with what is meant underlined, and the change that a fix makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lintfit.documents.model import Document, FileEdit, Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import frozen
from lintfit.report import Line, clean, shown_path
from lintfit.report.styled import cells

_BREAK = lazy_pattern(r"\r\n|\r|\n")
_TAB = "    "
_DIFF_LINES = 12


@frozen
class Label:
    """A span to underline and what to say of it."""

    span: Span
    text: str = ""
    style: str = "error"
    mark: str = "^"


def gutter_width(places: Iterable[tuple[Document, Span]]) -> int:
    """Columns that the line numbers of these places take."""
    return max((len(str(document.position(span.end).line + 1)) for document, span in places), default=1)


def rule_line(gutter: int) -> Line:
    return [(" " * (gutter + 1) + "|", "gutter")]


def arrow(document: Document, span: Span, gutter: int, sign: str = "-->") -> Line:
    """``--> path:line:column``"""
    at = document.position(span.start)
    cell = document.cell(span.start)
    within = f" (cell {cell.cell}, line {cell.line})" if cell is not None else ""
    return [(" " * gutter + sign, "gutter"), (f" {shown_path(document.path)}:{at.line}:{at.column}{within}", "")]


def frame(
    document: Document, labels: Sequence[Label], gutter: int, width: int, context: int = 1, alone: bool = False
) -> list[Line]:
    """The lines that the labels stand on, each label underlined on a row of its own, with some context around; of their
    lines what is labelled ``alone``, and nothing around it."""
    context = 0 if alone else context
    by_line: dict[int, list[Label]] = {}
    for label in labels:
        by_line.setdefault(document.row(label.span.start).line, []).append(label)
    last = document.row(len(document.text)).line
    shown = sorted(
        {
            number
            for line in by_line
            for number in range(line - context, line + context + 1)
            if 1 <= number <= last and (number in by_line or _line_text(document, number).strip())
        }
    )
    lines: list[Line] = [rule_line(gutter)]
    previous = None
    for number in shown:
        if previous is not None and number > previous + 1:
            lines.append([("...", "gutter")])
        previous = number
        lines += _source_line(document, number, by_line.get(number, []), gutter, width, alone)
    lines.append(rule_line(gutter))
    return lines


def _line_span(document: Document, number: int) -> Span:
    start = document.offset(number, 1)
    found = _BREAK.search(document.text, start)
    return Span(start, found.start() if found else len(document.text))


def _line_text(document: Document, number: int) -> str:
    return document.slice(_line_span(document, number))


def _source_line(
    document: Document, number: int, labels: list[Label], gutter: int, width: int, alone: bool
) -> list[Line]:
    line = _line_span(document, number)
    room = max(width - gutter - 3, 20)
    focus = min((label.span.start for label in labels), default=line.start) - line.start
    window = _window(document.slice(line), focus, room)
    if alone:
        last = max(min(label.span.end, line.end) for label in labels) - line.start
        window = _Window(window.raw, max(focus, window.start), min(last, window.end))
    shown = document.position(line.start).line
    lines: list[Line] = [[(f"{shown:>{gutter}} |", "gutter"), (f" {window.text}", "")]]
    for label in sorted(labels, key=lambda label: label.span):
        start = window.column(label.span.start - line.start)
        end = window.column(min(label.span.end, line.end) - line.start)
        under = label.mark * max(end - start, 1)
        said = f" {label.text}" if label.text else ""
        lines.append([(" " * (gutter + 1) + "|", "gutter"), (f" {' ' * start}{under}{said}", label.style)])
    return lines


@frozen
class _Window:
    """The part of a line that is shown: ``raw[start:end]`` with ``…`` where something is cut off."""

    raw: str
    start: int
    end: int

    @property
    def text(self) -> str:
        before = "…" if self.start else ""
        after = "…" if self.end < len(self.raw) else ""
        return before + _expanded(self.raw[self.start : self.end]) + after

    def column(self, offset: int) -> int:
        """The 0-based column at which a character of the line is shown."""
        inside = min(max(offset, self.start), self.end)
        return cells(_expanded(self.raw[self.start : inside])) + (1 if self.start else 0)


def _window(raw: str, focus: int, room: int) -> _Window:
    """As much of a line as there is room for, around the character ``focus``."""
    if len(raw) <= room and cells(_expanded(raw)) <= room:
        return _Window(raw, 0, len(raw))
    start = 0 if focus < room * 2 // 3 else focus - room // 3
    end = start
    used = 2
    while end < len(raw) and used < room:
        used += cells(_expanded(raw[end]))
        end += 1
    return _Window(raw, start, end)


def _expanded(text: str) -> str:
    return clean(text.replace("\t", _TAB))


def diff_lines(edits: Sequence[FileEdit], gutter: int, width: int, primary: Document | None = None) -> list[Line]:
    """The edits of a fix as removed and added lines, file by file; long changes are cut after some lines."""
    by_path: dict[str, list[FileEdit]] = {}
    for edit in edits:
        by_path.setdefault(shown_path(edit.path), []).append(edit)
    lines: list[Line] = []
    for path, group in by_path.items():
        document = group[0].document
        if document is None:
            lines += [[(" " * gutter + ":::", "gutter"), (f" {path} (new file)", "")]]
            changed = [("+", number, text) for number, text in enumerate(_lines(group[0].edit.text), 1)]
        else:
            if document is not primary:
                lines.append([(" " * gutter + ":::", "gutter"), (f" {path}", "")])
            changed = _changed(document, group)
        for sign, number, text in changed[:_DIFF_LINES]:
            style = "added" if sign == "+" else "removed"
            shown = _window(text, 0, max(width - gutter - 3, 20)).text
            lines.append([(f"{number:>{gutter}} ", "gutter"), (f"{sign} {shown}", style)])
        if len(changed) > _DIFF_LINES:
            more = len(changed) - _DIFF_LINES
            lines.append([(" " * (gutter + 1), ""), (f"… {more} more lines, see `--diff`", "dim")])
    return lines


def _changed(document: Document, edits: Sequence[FileEdit]) -> list[tuple[str, int, str]]:
    """``(sign, line number, line)`` of what the edits remove and add."""
    text = document.text
    spliced = sorted((edit.edit for edit in edits), key=lambda edit: edit.span)
    clusters: list[tuple[int, int, list[int]]] = []
    for index, edit in enumerate(spliced):
        start = document.offset(document.row(edit.span.start).line, 1)
        end = _line_end(text, max(edit.span.start, edit.span.end - 1))
        if clusters and start < clusters[-1][1]:
            first, reach, members = clusters[-1]
            clusters[-1] = (first, max(reach, end), [*members, index])
        else:
            clusters.append((start, end, [index]))
    changed: list[tuple[str, int, str]] = []
    shift = 0
    for start, end, members in clusters:
        new, reached = [], start
        for index in members:
            new += [text[reached : spliced[index].span.start], spliced[index].text]
            reached = spliced[index].span.end
        old_lines, new_lines = _lines(text[start:end]), _lines("".join(new) + text[reached:end])
        number = document.position(start).line
        same = _common(old_lines, new_lines)
        tail = _common(old_lines[same:][::-1], new_lines[same:][::-1])
        removed, added = old_lines[same : len(old_lines) - tail], new_lines[same : len(new_lines) - tail]
        changed += [("-", number + same + index, line) for index, line in enumerate(removed)]
        changed += [("+", number + same + shift + index, line) for index, line in enumerate(added)]
        shift += len(new_lines) - len(old_lines)
    return changed


def _line_end(text: str, offset: int) -> int:
    """The offset behind the line break of the line that holds an offset."""
    found = _BREAK.search(text, offset)
    return found.end() if found else len(text)


def _lines(text: str) -> list[str]:
    """The lines of a text as a document counts them: other separators do not break a line."""
    lines = _BREAK.split(text)
    return lines[:-1] if not lines[-1] else lines


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count
