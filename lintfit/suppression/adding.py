"""Writes the comments that ignore what is left, above the statements that the findings speak of."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lintfit.documents.comment_layout import Layout, layout
from lintfit.documents.directives import FILE_IGNORE, IGNORE, Directive, directives
from lintfit.documents.edits import apply
from lintfit.documents.lines import indentation
from lintfit.documents.model import DataDocument, Document, Edit, Kind, Span
from lintfit.documents.workspace import Workspace
from lintfit.findings.model import Finding
from lintfit.frozen import frozen
from lintfit.options.config import config_for
from lintfit.options.model import Options


@frozen
class Added:
    """The new texts by path, and lines on what was written and what could not be."""

    texts: Mapping[Path, str]
    notes: tuple[str, ...]


def add_ignores(findings: Sequence[Finding], workspace: Workspace, options: Options) -> Added:
    """Comments for the findings at or above ``fail-on``; the others change no exit status.

    A file is left alone, and a line says so, where it cannot carry comments (strict JSON) or would read differently
    with them.
    """
    wanted = [f for f in findings if f.severity >= config_for(f.place.document.path, options).fail_on.severity]
    documents = {finding.place.document: None for finding in wanted}
    texts: dict[Path, str] = {}
    notes: list[str] = []
    written = 0
    for document in documents:
        own = [finding for finding in wanted if finding.place.document is document]
        if reason := workspace.why_not_changed(document.path):
            notes.append(f"{reason}: {_plural(len(own), 'finding')} left")
            continue
        text = _with_comments(document, own, options.add_ignores or "")
        if text is not None and _reads_the_same(document, text, workspace):
            texts[document.path] = text
            written += len(own)
        else:
            notes.append(_elsewhere(document, own, options))
    if texts:
        does = "would silence" if options.diff else "silence"
        notes.insert(0, f"new comments in {_plural(len(texts), 'file')} {does} {_plural(written, 'finding')}")
    return Added(texts, tuple(notes))


def _with_comments(document: Document, findings: Iterable[Finding], reason: str) -> str | None:
    """The text with a comment for each finding, None where there can be none."""
    lines = layout(document)
    sign = "#"
    if document.kind is Kind.JSON:
        first = lines.first_comment() if isinstance(document, DataDocument) and document.root else None
        if first is None:
            return None
        sign = "#" if first == "#" else "//"
    by_line: dict[tuple[Span, str], list[str]] = {}
    for finding in findings:
        start = finding.place.span.start
        # What is reported about the first comment would move to the new one.
        word = FILE_IGNORE if document.kind is Kind.JSON and lines.opens_comment(start) else IGNORE
        names = by_line.setdefault((lines.lines_at(start), word), [])
        if finding.rule not in names:
            names.append(finding.rule)
    if any(document.text.startswith("#!", line.start) for line, _ in by_line):
        return None
    there = directives(document)
    edits = [
        _edit(lines, line, names, there, (f"{sign} lintfit: {word}", reason)) for (line, word), names in by_line.items()
    ]
    try:
        return apply(document.whole, map(document.edit_in_file, _joined(edits)))
    except ValueError:  # above the first line of a cell that is no Python
        return None


def _joined(edits: Iterable[Edit]) -> list[Edit]:
    """Comments for the same line one below the other."""
    by_span: dict[Span, str] = {}
    for edit in edits:
        by_span[edit.span] = by_span.get(edit.span, "") + edit.text
    return [Edit(span, text) for span, text in by_span.items()]


def _edit(lines: Layout, line: Span, names: Sequence[str], there: Sequence[Directive], words: tuple[str, str]) -> Edit:
    """The rules added to the comment that covers these lines already, or a new comment above them."""
    document = lines.document
    head, reason = words
    for directive in there:
        same = head.endswith(f" {directive.word}")
        if same and directive.names and (directive.word == FILE_IGNORE or directive.covers.end == line.end):
            end = directive.names[-1][1].end
            return Edit(Span(end, end), "".join(f", {name}" for name in names))
    comment = f"{head}[{', '.join(names)}]{f' {reason}' if reason else ''}"
    blanks = indentation(document.text, line.start)
    return Edit(Span(line.start, line.start), f"{blanks}{comment}{document.file.newline}")


def _reads_the_same(document: Document, text: str, workspace: Workspace) -> bool:
    """Whether the file says with the comments what it says without them."""
    after = workspace.with_overlay({document.path: text}).read(document.path, document.kind)
    before = _content(document)
    return before is not None and bool(_content(after) == before)


def _content(document: Document) -> Any:
    if isinstance(document, DataDocument):
        return document.root.plain() if document.root is not None else None
    if document.kind is Kind.PYTHON:
        try:
            return ast.dump(ast.parse(document.text))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
    commands = getattr(document, "commands", ())
    return [[word.text for word in command.words] for command in commands], len(document.problems)


def _elsewhere(document: Document, findings: Sequence[Finding], options: Options) -> str:
    """What to write where for a file that cannot carry the comments."""
    config = config_for(document.path, options).config_path or Path("lintfit.toml")
    table = "tool.lintfit.per-file-ignores" if config.name == "pyproject.toml" else "per-file-ignores"
    name = os.path.relpath(Path(document.path).absolute(), config.absolute().parent).replace(os.sep, "/")
    rules = json.dumps(sorted({finding.rule for finding in findings}))
    strict = document.kind is Kind.JSON and isinstance(document, DataDocument) and document.root is not None
    why = "strict JSON has no comments" if strict else "comments would change how it reads"
    shown = os.path.relpath(document.path).replace(os.sep, "/")
    pattern = json.dumps(name if "/" in name else f"/{name}")
    return (
        f"{shown}: {why}: {_plural(len(findings), 'finding')} left; "
        f"to silence that write into {os.path.relpath(config)}: [{table}] {pattern} = {rules}"
    )


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"
