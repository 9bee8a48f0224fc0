"""Which lines of a document are one statement, and where its comments stand, from the text alone."""

from __future__ import annotations

import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

from lintfit.documents.comments import SIGN, comments
from lintfit.documents.lines import line_end, line_start
from lintfit.documents.model import Document, Kind, Span
from lintfit.frozen import frozen

_CONTINUED = re.compile(r"^(?![ \t]*#)(?:[^\r\n]*\\(?:\r\n|\r|\n))+[^\r\n]*", re.MULTILINE)
_NO_STATEMENT = frozenset((tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER))


@frozen(eq=False)
class Layout:
    """The statements of several lines, as whole lines, and the comments."""

    document: Document
    statements: tuple[Span, ...] = ()
    comments: tuple[Span, ...] = ()

    def lines_at(self, offset: int) -> Span:
        """The whole lines of the statement that a place belongs to; its own line where that is all."""
        statement = _last_before(self.statements, offset)
        if statement is not None and offset <= statement.end:
            return statement
        return self.line_at(offset)

    def line_at(self, offset: int) -> Span:
        """The line that a place stands on, without its line break."""
        text = self.document.text
        return Span(line_start(text, offset), line_end(text, offset, breaks=False))

    def is_comment(self, offset: int) -> bool:
        """Whether the comment sign at this place begins a comment, or a further one within a comment."""
        comment = _last_before(self.comments, offset)
        return comment is not None and offset < comment.end

    def opens_comment(self, offset: int) -> bool:
        """Whether a comment begins at this place."""
        return SIGN.match(self.document.text, offset) is not None and self.is_comment(offset)

    def first_comment(self) -> str | None:
        """The sign of the first comment of a JSON document (``#``, ``//`` or ``/*``); None where it has none."""
        if not self.comments:
            return None
        sign = SIGN.match(self.document.text, self.comments[0].start)
        return sign.group() if sign is not None else None


def layout(document: Document) -> Layout:
    """The layout of a document. Text that cannot be read at all is taken line by line."""
    match document.kind:
        case Kind.PYTHON:
            statements = _python(document)
        case Kind.SHELL:
            statements = _shell(document)
        case _:
            statements = ()
    return Layout(document, statements, comments(document))


def _last_before(spans: tuple[Span, ...], offset: int) -> Span | None:
    index = bisect_right(spans, offset, key=lambda span: span.start) - 1
    return spans[index] if index >= 0 else None


def _python(document: Document) -> tuple[Span, ...]:
    statements: list[Span] = []
    first: int | None = None
    try:
        for token in tokenize.generate_tokens(io.StringIO(document.text, newline="").readline):
            line = token.start[0]
            if token.type == tokenize.NEWLINE:
                if first is not None and line > first:
                    end = line_end(document.text, document.offset(line, 1), breaks=False)
                    statements.append(Span(document.offset(first, 1), end))
                first = None
            elif first is None and token.type not in _NO_STATEMENT:
                first = line
    except (tokenize.TokenError, SyntaxError, IndexError):
        pass  # no Python from here on: its lines stand for themselves
    return tuple(statements)


def _shell(document: Document) -> tuple[Span, ...]:
    continued = [Span(*match.span()) for match in _CONTINUED.finditer(document.text)]
    quoted = (span for span in _spread(document) if not any(_within(span, other) for other in continued))
    return tuple(sorted((*continued, *quoted)))


def _spread(document: Document) -> Iterator[Span]:
    """The lines of commands that a quoted text spreads over several of them."""
    text = document.text
    for command in _commands(document):
        span: Span = command.span
        if "\n" in document.slice(span):
            yield Span(line_start(text, span.start), line_end(text, span.end, breaks=False))


def _commands(document: Document) -> Iterable[Any]:
    # A ShellDocument's; its module brings tree-sitter, which no other kind needs.
    return getattr(document, "commands", ())


def _within(inner: Span, outer: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end
