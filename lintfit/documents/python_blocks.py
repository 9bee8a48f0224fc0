"""A libcst tree whose functions are parsed when somebody looks into them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst
from libcst._nodes.internal import CodegenState

from lintfit.documents.python_outline import Body, without_bodies
from lintfit.documents.python_parse import parse
from lintfit.documents.python_places import Places, Spans, printed, shifted
from lintfit.documents.python_walk import children, walk

LINES_ABOVE = 3
"""Lines of what libcst parses that stand above those of a body."""


@dataclass(slots=True, eq=False)
class Lines:
    """The lines of a function's body, parsed at most once."""

    module: cst.Module
    text: str
    place: Body
    error: cst.ParserSyntaxError | RecursionError | UnicodeError | None = None
    """Why libcst could not read them."""
    _block: cst.IndentedBlock | None = None
    _spans: Spans | None = None

    @property
    def are_parsed(self) -> bool:
        return self._block is not None

    @property
    def block(self) -> cst.IndentedBlock:
        if self._block is None:
            self._block = self._parse()
        return self._block

    @property
    def printed(self) -> str:
        """The text as libcst prints it: with a line break at its end, also where the file has none."""
        return self.text if self.text.endswith(("\n", "\r")) else self.text + self.module.default_newline

    @property
    def spans(self) -> Spans | None:
        """Start and end of the nodes inside; None where they do not print what stands there."""
        if self._spans is None:
            self._spans = self._locate()
        return self._spans or None

    def _locate(self) -> Spans:
        if self.error is not None:
            return dict.fromkeys(walk(self.block), (self.place.first, self.place.last))
        places = Places(self.module)
        places.increase_indent(self.place.indent)
        for node in (*self.block.body, *self.block.footer):
            printed(node, places)
        return shifted(places.spans, self.place.start) if "".join(places.tokens) == self.printed else {}

    def _parse(self) -> cst.IndentedBlock:
        newline = self.module.default_newline
        # libcst takes a text's first indentation and its first line break for those that go without saying.
        above = f"if 0:{newline}{self.module.default_indent}0{newline}if 0:{newline}"
        try:
            statement = parse(f"{above}{self.printed}0{newline}").body[1]
        except (cst.ParserSyntaxError, RecursionError, UnicodeError) as error:
            self.error = error
            return cst.IndentedBlock([cst.SimpleStatementLine([cst.Return(cst.Ellipsis())])])
        assert isinstance(statement, cst.If) and isinstance(statement.body, cst.IndentedBlock)
        return statement.body


class FunctionBlock(cst.IndentedBlock):
    """The body of a function, whose statements are parsed from their own lines when they are first asked for.

    The nodes are those that parsing the whole text gives. Where libcst cannot read the lines, the function is one that
    returns nobody knows what.
    """

    lines: Lines

    def __init__(self, stub: cst.IndentedBlock, lines: Lines) -> None:
        for name, value in (("header", stub.header), ("indent", stub.indent), ("lines", lines)):
            object.__setattr__(self, name, value)  # nodes are frozen

    @property
    def body(self) -> Sequence[cst.BaseStatement]:  # type: ignore[override]
        return self.lines.block.body

    @property
    def footer(self) -> Sequence[cst.EmptyLine]:
        return self.lines.block.footer

    def _codegen_impl(self, state: CodegenState) -> None:
        if not isinstance(state, Places):
            super()._codegen_impl(state)
            return
        # Places outside of the function are told without parsing it: its lines are what it prints.
        self.header._codegen(state)
        lines = self.lines
        shift = state.offset - lines.place.start
        state.spans[self] = (lines.place.first + shift, lines.place.last + shift)
        state.add_token(lines.text)
        if lines.printed != lines.text:
            state.add_token(lines.module.default_newline)


def parse_module(text: str, bodies: Sequence[Body | None]) -> tuple[cst.Module, tuple[FunctionBlock, ...]]:
    """The tree of a text, and the functions' bodies in it that are not parsed yet.

    ``bodies`` are those of its outline. Raises what ``libcst.parse_module`` raises.
    """
    if not any(bodies):
        return parse(text), ()
    try:
        module = parse(without_bodies(text, bodies))
    except cst.ParserSyntaxError:
        return parse(text), ()  # for an error with its true place
    functions = list(_functions(module))
    if len(functions) != len(bodies):
        return parse(text), ()
    blocks: list[FunctionBlock] = []
    for function, body in zip(functions, bodies, strict=True):
        if body is not None and isinstance(function.body, cst.IndentedBlock):
            blocks.append(FunctionBlock(function.body, Lines(module, text[body.start : body.end], body)))
            # Nodes are frozen; this one is nobody's yet.
            object.__setattr__(function, "body", blocks[-1])
    return module, tuple(blocks)


def _functions(node: cst.CSTNode) -> Iterator[cst.FunctionDef]:
    """The functions below a node that stand in no other function, in the order of the text."""
    for child in children(node):
        if isinstance(child, cst.FunctionDef):
            yield child
        elif not isinstance(child, cst.BaseExpression | cst.SimpleStatementLine | cst.SimpleStatementSuite):
            yield from _functions(child)
