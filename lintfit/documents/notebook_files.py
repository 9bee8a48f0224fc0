"""Files that a notebook's Python writes in plain sight: ``open(name, "w")`` with ``write`` or ``yaml.dump``.

What is written is a string or a dict of the notebook's own, or what ``yaml.safe_load`` makes of such a string, which
says the same.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator

from lintfit.documents.notebook_code import Statements
from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import frozen

_QUOTES = lazy_pattern(r"[rRuU]?(\"\"\"|'''|\"|')")
_LOADS = frozenset({"load", "safe_load", "full_load", "loads"})
_DUMPS = frozenset({"dump", "safe_dump"})
_OPENERS = frozenset({"w", "wt", "w+"})


@frozen
class Content:
    """A text and where it stands: characters ``[start, end)`` of a cell, exactly these where ``plain``."""

    text: str
    cell: int
    start: int
    end: int
    plain: bool


@frozen
class Written:
    """A file that the statement at ``start`` of a cell writes."""

    name: str
    start: int
    content: Content


class Contents:
    """Follows which of a notebook's names stand for strings and dicts, from cell to cell."""

    def __init__(self) -> None:
        self._names: dict[str, Content] = {}

    def of_cell(self, number: int, statements: Statements) -> Iterator[Written]:
        """The files that the statements at the top of a cell write, in order."""
        reader = _Cell(self, number, statements)
        for statement in statements.body:
            if isinstance(statement, ast.Assign):
                content = reader.content(statement.value)
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        self.put(target.id, content)
            yield from reader.written(statement)

    def put(self, name: str, content: Content | None) -> None:
        if content is None:
            self._names.pop(name, None)
        else:
            self._names[name] = content

    def get(self, name: str) -> Content | None:
        return self._names.get(name)


@frozen(eq=False)
class _Cell:
    contents: Contents
    number: int
    statements: Statements

    def content(self, node: ast.expr) -> Content | None:
        """What an expression comes to as text, where that is in sight."""
        match node:
            case ast.Constant(value=str() as text):
                start, end = self.statements.span(node)
                quotes = _QUOTES.match(self.statements.source, start)
                if quotes is None:
                    return None
                inner = quotes.end(), end - len(quotes[1])
                if self.statements.source[inner[0] : inner[1]] == text:
                    return Content(text, self.number, *inner, True)
                return Content(text, self.number, start, end, False)
            case ast.Dict():
                try:
                    made = json.dumps(ast.literal_eval(node), indent=1)
                except (ValueError, TypeError, RecursionError):
                    return None
                return Content(made, self.number, *self.statements.span(node), False)
            case ast.Name(id=name):
                return self.contents.get(name)
            case ast.Call(func=ast.Attribute(attr="strip" | "lstrip" | "rstrip", value=inner), args=[]):
                return self.content(inner)
            case ast.Call(func=ast.Attribute(attr=attr), args=[inner, *_]) if attr in _LOADS:
                return self.content(inner)
        return None

    def written(self, statement: ast.stmt) -> Iterator[Written]:
        start, _ = self.statements.span(statement)
        match statement:
            case ast.With(items=[ast.withitem(context_expr=ast.Call() as opened, optional_vars=ast.Name(id=handle))]):
                name = self.opened(opened)
                calls = [each.value for each in statement.body if isinstance(each, ast.Expr)]
                found = [self.dumped(call, handle) for call in calls if isinstance(call, ast.Call)]
                contents = [content for content in found if content is not None]
                if name and len(contents) == len(statement.body) == 1:
                    yield Written(name, start, contents[0])
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="write_text", value=path), args=[inner, *_])):
                content = self.content(inner)
                name = self.name(path.args[0]) if isinstance(path, ast.Call) and len(path.args) == 1 else ""
                if name and content is not None:
                    yield Written(name, start, content)

    def opened(self, call: ast.Call) -> str:
        """The name of a file that ``open(name, "w")`` opens, as far as it is known."""
        by_name = isinstance(call.func, ast.Name) and call.func.id == "open"
        mode = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "mode"), None)
        writes = isinstance(mode, ast.Constant) and mode.value in _OPENERS
        return self.name(call.args[0]) if by_name and writes else ""

    def name(self, node: ast.expr) -> str:
        content = self.content(node)
        plain = content is not None and re.fullmatch(r"[\w./-]+", content.text) is not None
        return content.text if content is not None and plain else ""

    def dumped(self, call: ast.Call, handle: str) -> Content | None:
        """What ``f.write(text)``, ``yaml.dump(data, f)`` or ``json.dump(data, f)`` writes."""
        match call:
            case ast.Call(func=ast.Attribute(attr="write", value=ast.Name(id=name)), args=[inner]) if name == handle:
                return self.content(inner)
            case ast.Call(func=ast.Attribute(attr=attr), args=[inner, ast.Name(id=name), *_]):
                return self.content(inner) if attr in _DUMPS and name == handle else None
        return None
