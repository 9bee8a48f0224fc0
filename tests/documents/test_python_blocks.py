"""Functions parsed when they are looked at: the tree, its places and its edits are those of the text parsed at once."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path
from random import Random

import libcst as cst
import pytest

from lintfit.documents import python_blocks, python_outline
from lintfit.documents.edits import apply
from lintfit.documents.model import FileText
from lintfit.documents.python_blocks import FunctionBlock
from lintfit.documents.python_edits import remove_statement
from lintfit.documents.python_parse import parse
from lintfit.documents.python_places import spans_of
from lintfit.documents.python_reader import PythonDocument, read_python
from lintfit.documents.python_walk import walk

ROOT = Path(__file__).resolve().parents[2]


def read(text: str) -> PythonDocument:
    return read_python(FileText(Path("a.py"), text))


def assert_equal(found: object, expected: object) -> None:
    """All fields of all nodes, blanks and comments included."""
    if isinstance(expected, cst.CSTNode):
        assert isinstance(found, type(expected))
        for field in fields(expected):
            assert_equal(getattr(found, field.name), getattr(expected, field.name))
    elif isinstance(expected, list | tuple):
        assert isinstance(found, list | tuple) and len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_equal(one, other)
    else:
        assert found == expected


def assert_same(text: str) -> None:
    """Tree, places and text are those of the whole parse."""
    document, whole = read(text), cst.parse_module(text)
    assert document.module is not None
    spans = spans_of(whole, text)
    if spans is not None:
        nodes = zip(walk(document.module), walk(whole), strict=True)
        for node, other in [*nodes][:0:-1]:
            start, end = spans[other]
            span = document.span(node)
            assert (span.start, span.end) == (start, min(end, len(text)))
    assert document.editable == (spans is not None)
    assert_equal(document.module, whole)
    assert document.module.code == whole.code


@pytest.fixture
def every_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """However short a body is, it waits."""
    monkeypatch.setattr(python_outline, "LEAST", 0)


@pytest.mark.parametrize("name", sorted(path.relative_to(ROOT) for path in ROOT.glob("lintfit/[des]*/*.py")))
def test_the_tree_is_that_of_the_whole_text(name: Path) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert_equal(read(text).module, cst.parse_module(text))


SMALL = (
    "x = 1",
    "x = (1,\n2)",
    "f(a); g(b)",
    "return x  # why",
    "x = 1 + \\\n  2",
    '"""doc\n  string\n# no\n"""',
    "é = 'ü'",
)
HEADERS = (
    "def f(self):",
    "async def f(): # why",
    "def f(\n  a,  # one\n  b=1\n):",
    "@d\ndef f(): \\\n",
    "@d(1)\n# x\ndef f():",
)


class Writer:
    """Writes modules at random: functions in classes, branches and functions, with comments where none belong."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def text(self) -> str:
        newline = self.random.choice(["\n", "\n", "\r\n", "\r"])
        lines = "\n".join(self.suite("", 3)).split("\n")
        return newline.join(lines) + self.random.choice(
            ["", newline, "  ", f"{newline}  # x", f"{newline}    # x{newline}"]
        )

    def suite(self, indent: str, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            lines += [*self.gap(), *self.statement(indent, depth)]
        return lines + self.gap()

    def gap(self) -> list[str]:
        """Blank lines and comments, indented like anything or nothing."""
        blanks = ["", "", " ", "  ", "    ", "\t", "      ", "        ", "\x0c"]
        lines = self.random.choice([0, 0, 1, 2])
        return [self.random.choice(blanks) + self.random.choice(["", "# a"]) for _ in range(lines)]

    def statement(self, indent: str, depth: int) -> list[str]:
        kind = self.random.choice(["small", "function", "function", "class", "if", "try"] if depth else ["small"])
        if kind == "small":
            return [indent + self.random.choice(SMALL)]
        inner = indent + self.random.choice(["    ", "    ", "  ", "\t"])
        body = self.suite(inner, depth - 1)
        if kind == "function":
            return [*(indent + line for line in self.random.choice(HEADERS).split("\n")), *body]
        if kind == "try":
            return [f"{indent}try:", *body, f"{indent}except E:  # x", *self.suite(inner, depth - 1)]
        return [f"{indent}class A:" if kind == "class" else f"{indent}if a:", *body]


@pytest.mark.parametrize("seed", range(80))
def test_modules_at_random(every_body: None, seed: int) -> None:
    text = Writer(seed).text()
    ast.parse(text)
    assert_same(text)


def test_nothing_is_parsed_before_it_is_looked_at(every_body: None) -> None:
    text = "class A:\n    def f(self):\n        x(1)\n        # end\n\n    y = 2\n\n\ndef g():\n    z(3)\n"
    document = read(text)
    assert document.module is not None
    cls, function = document.module.body
    assert isinstance(cls, cst.ClassDef) and isinstance(function, cst.FunctionDef)
    method = cls.body.body[0]
    assert isinstance(method, cst.FunctionDef)
    first, second = method.body, function.body
    assert isinstance(first, FunctionBlock) and isinstance(second, FunctionBlock)
    assert document.slice(document.span(cls.body.body[1])) == "y = 2"
    assert document.slice(document.span(function)) == "def g():\n    z(3)" and document.editable
    assert not first.lines.are_parsed and not second.lines.are_parsed
    assert document.slice(document.span(first.body[0])) == "x(1)"
    assert apply(text, remove_statement(document, first.body[0])) == text.replace("x(1)", "pass")
    assert document.parent(first.body[0]) is first and document.parent(first) is method
    assert first.lines.are_parsed and not second.lines.are_parsed


def test_a_body_that_only_libcst_refuses_is_one_problem(every_body: None, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def f():\n    x = 1\n    y = 2\n\n\nz = 3\n"
    document = read(text)
    assert document.module is not None and not document.problems
    function = document.module.body[0]

    def refuse(text: str) -> cst.Module:
        raise cst.ParserSyntaxError("no\nwhy", lines=text.split("\n"), raw_line=5, raw_column=4)

    monkeypatch.setattr(python_blocks, "parse", refuse)
    (statement,) = function.body.body
    assert isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Return)
    (problem,) = document.problems
    assert (problem.code, problem.detail) == ("not-read", "no")
    assert document.slice(problem.span) == "y"
    assert document.slice(document.span(statement)) == "x = 1\n    y = 2"
    assert document.slice(document.span(document.module.body[1])) == "z = 3"


def test_made_up_nodes_are_still_checked() -> None:
    parse("x = 1\n")
    with pytest.raises(cst.CSTValidationError):
        cst.Name("")
