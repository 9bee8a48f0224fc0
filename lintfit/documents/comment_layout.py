"""Which lines of a document are one statement, and where its comments stand, from the text alone."""

from __future__ import annotations

import io
import re
import tokenize

from lintfit.documents.comments import SIGN, commands_of, comments, last_before
from lintfit.documents.lines import line_end, line_start
from lintfit.documents.model import Document, Kind, Span
from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import frozen

_CONTINUED = lazy_pattern(r"^(?![ \t]*#)(?:[^\r\n]*\\(?:\r\n|\r|\n))+[^\r\n]*", re.MULTILINE)
_NO_STATEMENT = frozenset((tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER))


@frozen(eq=False)
class Layout:
    """The statements of several lines, as whole lines, and the comments."""

    document: Document
    statements: tuple[Span, ...] = ()
    comments: tuple[Span, ...] = ()

    def lines_at(self, offset: int) -> Span:
        """The whole lines of the statement that a place belongs to; its own line where that is all."""
        statement = last_before(self.statements, offset)
        if statement is not None and offset <= statement.end:
            return statement
        return self.line_at(offset)

    def line_at(self, offset: int) -> Span:
        """The line that a place stands on, without its line break."""
        text = self.document.text
        return Span(line_start(text, offset), line_end(text, offset, breaks=False))

    def is_comment(self, offset: int) -> bool:
        """Whether the comment sign at this place begins a comment, or a further one within a comment."""
        comment = last_before(self.comments, offset)
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
    """Lines that backslashes join, and those of commands that a quoted text spreads over several of them."""
    text = document.text
    continued = [Span(*match.span()) for match in _CONTINUED.finditer(text)]
    several = (command.span for command in commands_of(document) if "\n" in document.slice(command.span))
    quoted = (Span(line_start(text, span.start), line_end(text, span.end, breaks=False)) for span in several)
    alone = (span for span in quoted if not any(o.start <= span.start and span.end <= o.end for o in continued))
    return tuple(sorted((*continued, *alone)))
