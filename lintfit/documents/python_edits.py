"""Edits of Python that keep the style of what stands around them. All of them assume ``document.editable``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import libcst as cst

from lintfit.documents import python_layout
from lintfit.documents.edits import comma_in_line
from lintfit.documents.lines import line_end, line_start
from lintfit.documents.model import Edit, Span
from lintfit.documents.python_layout import Bracketed
from lintfit.documents.python_layout import width as width
from lintfit.documents.python_reader import PythonDocument

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement | cst.BaseSmallStatement

_BLANKS = re.compile(r"[ \t\f]*")
_REST_OF_LINE = re.compile(r"[ \t\f]*(?:#[^\r\n]*)?(?=\r\n|\r|\n|\Z)")
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_OPENING_QUOTE = re.compile(r"""(?<=[(\[{=,: ])(['"])(?!\1)""")
_COMMA = re.compile(r"(?:[ \t\f\r\n]|\\(?=[\r\n])|#[^\r\n]*)*,")


def replace(document: PythonDocument, node: cst.CSTNode, text: str) -> tuple[Edit, ...]:
    """Put ``text`` in the place of a node; parentheses around it stay."""
    return (Edit(document.span(node), text),)


def set_keyword(document: PythonDocument, call: cst.Call, name: str, code: str) -> tuple[Edit, ...]:
    """Make the call say ``name=code``: replace the keyword's value, or add it after the last plain argument.

    An added keyword stands on a line of its own where the call's arguments do, or where no line has room for it.
    Existing ``**kwargs`` stay last.
    """
    for argument in call.args:
        if argument.keyword is not None and argument.keyword.value == name:
            return (Edit(_value_span(document, argument), code),)
    return _behind_relative(document, call, name, code) or add_arguments(document, call, f"{name}={code}")


_RELATIVES: Mapping[str, str] = {
    "gradient_accumulation_steps": "per_device_train_batch_size",
    "per_device_eval_batch_size": "per_device_train_batch_size",
}
"""Behind which keyword people write another."""


def _behind_relative(document: PythonDocument, call: cst.Call, name: str, code: str) -> tuple[Edit, ...]:
    """A new keyword on a line of its own behind its relative, which has one as well, and others below it."""
    relative = _RELATIVES.get(name)
    for argument in call.args[:-1]:
        if relative is None or argument.keyword is None or argument.keyword.value != relative:
            continue
        span, comma_end = document.span(argument), _comma_end(document, argument)
        if comma_end is None or not _starts_line(document, span.start):
            return ()
        rest = _REST_OF_LINE.match(document.text, comma_end)
        text = python_layout.fitted(document, f"{name}={code}", _indent(document, span.start))
        return _add_line(document, argument, span, text) if rest is not None else ()
    return ()


def add_arguments(document: PythonDocument, call: cst.Call, *texts: str) -> tuple[Edit, ...]:
    """Add arguments after the last plain one, each on a line of its own where the call's arguments are."""
    plain = [argument for argument in call.args if argument.star != "**"]
    items = [document.span(argument) for argument in call.args]
    if not items:
        return (Edit.insert(document.span(call).end - 1 - _blank(document, call), ", ".join(texts)),)
    if not plain and _starts_line(document, items[0].start):
        separator = f",{document.file.newline}{_indent(document, items[0].start)}"
        return (Edit.insert(items[0].start, "".join(text + separator for text in texts)),)
    span = document.span(plain[-1]) if plain else items[0]
    if len(items) == 1 and isinstance(call.args[0].value, cst.GeneratorExp) and not call.args[0].value.lpar:
        return (Edit.insert(span.start, "("), Edit.insert(span.end, f"), {', '.join(texts)}"))
    if _starts_line(document, span.start):
        indent = _indent(document, span.start)
        lines = [python_layout.fitted(document, text, indent) for text in texts]
        return _add_line(document, plain[-1], span, f",{document.file.newline}{indent}".join(lines))
    outer = _outermost(document, call)
    return python_layout.added(
        document,
        _bracketed(document, call),
        items.index(span) + 1 if plain else 0,
        texts,
        _bracketed(document, outer) if outer is not None else None,
    )


def _bracketed(document: PythonDocument, call: cst.Call) -> Bracketed:
    """The arguments of a call, at least one, between its brackets."""
    items = [document.span(argument) for argument in call.args]
    return Bracketed(Span(items[0].start - _blank(document, call), document.span(call).end - 1), items)


def _outermost(document: PythonDocument, call: cst.Call) -> cst.Call | None:
    """The outermost call on whose line, as one of whose arguments, another one stands."""
    found: cst.Call | None = None
    line = line_start(document.text, document.span(call).start)
    before: cst.CSTNode = call
    node: cst.CSTNode | None = document.parent(call)
    while node is not None and not isinstance(node, cst.BaseSmallStatement | cst.BaseCompoundStatement):
        if isinstance(node, cst.Call) and any(argument is before for argument in node.args):
            if line_start(document.text, document.span(node).start) != line:
                break
            found = node
        before, node = node, document.parent(node)
    return found


def add_entry(document: PythonDocument, node: cst.Dict, key: str, code: str) -> tuple[Edit, ...]:
    """Add ``key: code`` behind the last element of a dict, on a line of its own where the others are."""
    text = f"{key}: {code}"
    if not node.elements:
        return (Edit.insert(document.span(node).start + 1, text),)
    last = node.elements[-1]
    span = document.span(last)
    if _starts_line(document, span.start):
        return _add_line(document, last, span, text)
    whole = document.span(node)
    around = Bracketed(Span(whole.start + 1, whole.end - 1), [document.span(element) for element in node.elements])
    return python_layout.added(document, around, len(node.elements), (text,))


def add_names(document: PythonDocument, aliases: Sequence[cst.ImportAlias], place: int, names: Sequence[str]) -> Edit:
    """Add names to those of a ``from … import``, in front of the one at ``place`` or behind the last."""
    own_lines = len(aliases) > 1 and _starts_line(document, document.span(aliases[-1]).start)
    if place < len(aliases):
        start = document.span(aliases[place]).start
        separator = "," + document.file.newline + _indent(document, start) if own_lines else ", "
        return Edit.insert(start, "".join(name + separator for name in names))
    span = document.span(aliases[-1])
    separator = "," + document.file.newline + _indent(document, span.start) if own_lines else ", "
    return Edit.insert(span.end, "".join(separator + name for name in names))


def quote(document: PythonDocument, text: str) -> str:
    """A plain string in the quotes that the file uses most."""
    marks = _OPENING_QUOTE.findall(document.text)
    mark = "'" if marks.count("'") > marks.count('"') else '"'
    return f"{mark}{text}{mark}"


def _add_line(document: PythonDocument, last: cst.Arg | cst.BaseDictElement, span: Span, text: str) -> tuple[Edit, ...]:
    """Add an argument or element on a line of its own below ``last``, behind a comment that stands there."""
    line = document.file.newline + _indent(document, span.start) + text
    comma_end = _comma_end(document, last)
    rest = _REST_OF_LINE.match(document.text, comma_end or span.end)
    if rest is None or rest.end() == len(document.text):
        # The bracket closes, or another argument follows, on this very line.
        return (Edit.insert(span.end, "," + line),)
    if comma_end:
        return (Edit.insert(rest.end(), line + ","),)
    if rest.end() == span.end:
        return (Edit.insert(span.end, "," + line),)
    return (comma_in_line(document.text, span.end), Edit.insert(rest.end(), line))


def remove_keyword(document: PythonDocument, call: cst.Call, name: str) -> tuple[Edit, ...]:
    """Take a keyword argument out of a call, with its comma and, where it has them to itself, its lines.

    Empty where the call has no such keyword.
    """
    index = next((i for i, item in enumerate(call.args) if item.keyword and item.keyword.value == name), None)
    if index is None:
        return ()
    argument, text = call.args[index], document.text
    span = document.span(argument)
    comma_end = _comma_end(document, argument)
    after = comma_end or span.end
    rest = _REST_OF_LINE.match(text, after)
    if _starts_line(document, span.start) and rest is not None and rest.end() < len(text):
        return (Edit(Span(line_start(text, span.start), line_end(text, after)), ""),)
    if index + 1 < len(call.args):
        following = document.span(call.args[index + 1]).start
        if "#" in text[after:following] or _LINE_BREAK.search(text, after, following):
            blanks = _BLANKS.match(text, after)
            following = blanks.end() if blanks and not _LINE_BREAK.match(text, blanks.end()) else after
        return (Edit(Span(span.start, following), ""),)
    if index == 0:
        return (Edit(Span(span.start, after), ""),)
    before = document.span(call.args[index - 1]).end
    start = span.start if "#" in text[before : span.start] else before
    return (Edit(Span(start, after if start == span.start else span.end), ""),)


def remove_statement(document: PythonDocument, statement: Statement) -> tuple[Edit, ...]:
    """Delete a statement with its complete lines and its trailing comment; ``pass`` takes the place of a block's last.

    Comments above it stay. An ``else`` of which nothing is left goes with it, and with what its comments say of it.
    """
    parent = document.parent(statement)
    if isinstance(statement, cst.BaseSmallStatement) and isinstance(
        parent, (cst.SimpleStatementLine, cst.SimpleStatementSuite)
    ):
        if len(parent.body) > 1:
            return _remove_small(document, parent, statement)
        if isinstance(parent, cst.SimpleStatementSuite):
            return (Edit(document.span(statement), "pass"),)
        statement, parent = parent, document.parent(parent)
    start = _statement_start(document, statement)
    end = document.span(statement).end
    if isinstance(parent, cst.IndentedBlock) and len(parent.body) == 1:
        branch = document.parent(parent)
        if isinstance(branch, cst.Else) and isinstance(document.parent(branch), cst.If):
            first = line_start(document.text, document.span(branch).start)
            return (Edit(Span(first, line_end(document.text, end)), ""),)
        return (Edit(Span(start, end), "pass"),)
    return (Edit(Span(line_start(document.text, start), line_end(document.text, end)), ""),)


def _remove_small(
    document: PythonDocument,
    line: cst.SimpleStatementLine | cst.SimpleStatementSuite,
    statement: cst.BaseSmallStatement,
) -> tuple[Edit, ...]:
    index = next(i for i, item in enumerate(line.body) if item is statement)
    span = document.span(statement)
    if index + 1 < len(line.body):
        return (Edit(Span(span.start, document.span(line.body[index + 1]).start), ""),)
    return (Edit(Span(document.span(line.body[index - 1]).end, span.end), ""),)


def insert_statement_before(document: PythonDocument, statement: Statement, code: str) -> tuple[Edit, ...]:
    """Insert lines of code, given without indentation, above a statement with its comments, and in its block."""
    line = _whole_line(document, statement)
    if isinstance(line, cst.BaseSmallStatement):
        return (Edit.insert(document.span(line).start, f"{code}; "),)
    start = _statement_start(document, line)
    indent, newline = _indent(document, start), document.file.newline
    if not code.startswith("@"):
        start = above_comments(document, start)
    return (Edit.insert(start, _lines(code, indent, newline) + newline + indent),)


def above_comments(document: PythonDocument, start: int) -> int:
    """Where the comments begin that stand right above a statement, of which they speak; ``start``, where it begins
    itself, where there are none."""
    text, line, indent = document.text, line_start(document.text, start), _indent(document, start)
    if document.file.within is not None or text[line:start] != indent:
        return start  # a notebook's line above may be of another cell
    while line > 0:
        above = line_start(text, line - (2 if text.startswith("\r\n", line - 2) else 1))
        if not text.startswith(f"{indent}#", above) or text.startswith("#!", above):
            break
        line = above
    return line + len(indent)


def insert_statement_after(document: PythonDocument, statement: Statement, code: str) -> tuple[Edit, ...]:
    """Insert lines of code, given without indentation, below a statement and in its block."""
    line = _whole_line(document, statement)
    if isinstance(line, cst.BaseSmallStatement):
        return (Edit.insert(document.span(line).end, f"; {code}"),)
    indent, newline = _indent(document, _statement_start(document, line)), document.file.newline
    end = line_end(document.text, document.span(line).end)
    block = indent + _lines(code, indent, newline)
    if document.text[:end].endswith(("\n", "\r")):
        return (Edit.insert(end, block + newline),)
    return (Edit.insert(end, newline + block),)


def _whole_line(document: PythonDocument, statement: Statement) -> Statement:
    """The line that a small statement stands on; itself where that is the one-line body of an ``if x: …``."""
    if isinstance(statement, cst.BaseSmallStatement):
        parent = document.parent(statement)
        if isinstance(parent, cst.SimpleStatementLine):
            return parent
    return statement


def _lines(code: str, indent: str, newline: str) -> str:
    lines = code.strip("\r\n").splitlines()
    return newline.join([lines[0], *(indent + line if line.strip() else "" for line in lines[1:])])


def _statement_start(document: PythonDocument, statement: Statement) -> int:
    decorators = getattr(statement, "decorators", ())
    return document.span(decorators[0] if decorators else statement).start


def _value_span(document: PythonDocument, argument: cst.Arg) -> Span:
    """The value of a keyword argument with the parentheses around it."""
    whole, value = document.span(argument), argument.value
    equal = document.text.index("=", document.span(argument.keyword or argument).end) + 1
    start = equal + len(_BLANKS.match(document.text, equal).group())  # type: ignore[union-attr]
    if not value.lpar:
        start = document.span(value).start
    return Span(start, whole.end)


def _blank(document: PythonDocument, call: cst.Call) -> int:
    """Characters between the opening bracket and what follows it."""
    module = document.module
    assert module is not None
    return len(module.code_for_node(call.whitespace_before_args))


def _comma_end(document: PythonDocument, argument: cst.Arg | cst.BaseDictElement) -> int | None:
    if not isinstance(argument.comma, cst.Comma):
        return None
    comma = _COMMA.match(document.text, document.span(argument).end)
    return comma.end() if comma else None


def _starts_line(document: PythonDocument, offset: int) -> bool:
    return not document.text[line_start(document.text, offset) : offset].strip(" \t\f")


def _indent(document: PythonDocument, offset: int) -> str:
    text = document.text
    start = line_start(text, offset)
    return _BLANKS.match(text, start).group()  # type: ignore[union-attr]
