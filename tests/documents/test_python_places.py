"""Spans of Python nodes are those of libcst's own provider."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import libcst as cst
import pytest

from lintfit.documents.model import FileText
from lintfit.documents.python_places import BLANKS, Spans, lines_of, spans_of
from lintfit.documents.python_reader import read_python
from lintfit.documents.python_walk import walk

ROOT = Path(__file__).resolve().parents[2]
FILES = ("lintfit/documents/shell_reader.py", "lintfit/commands/check.py", "tests/sources/script/test_script.py")


def whole(text: str) -> tuple[cst.Module, Spans]:
    """The tree of a text parsed at once, and its spans as libcst's own provider has them."""
    module = cst.parse_module(text)
    spans = spans_of(module, text)
    assert spans is not None
    return module, spans


def assert_same_places(text: str, order: Callable[[list[int]], Iterable[int]]) -> None:
    """Each node of the document has type and span of the same node of the whole tree, in whatever order it is asked."""
    document = read_python(FileText(Path("a.py"), text))
    assert document.module is not None
    module, spans = whole(text)
    expected = [node for node in walk(module) if node is not module]
    found = [node for node in walk(document.module) if node is not document.module]
    assert len(found) == len(expected)
    for index in order(list(range(len(found)))):
        span = document.span(found[index])
        assert isinstance(found[index], type(expected[index]))
        start, end = spans[expected[index]]
        assert (span.start, span.end) == (start, min(end, len(text)))


@pytest.mark.parametrize("name", FILES)
def test_spans_of_every_node(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    document = read_python(FileText(Path(name), text))
    module, spans = whole(text)
    for node, place in lines_of(module).items():
        if isinstance(node, cst.Module):
            continue
        if type(node) in BLANKS:
            assert node not in spans
            continue
        start = document.offset(place.start.line, place.start.column + 1)
        assert spans[node] == (start, document.offset(place.end.line, place.end.column + 1))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("order", [list, reversed])
def test_nodes_stand_where_they_stand_in_the_whole(name: str, order: Callable[[list[int]], Iterable[int]]) -> None:
    assert_same_places((ROOT / name).read_text("utf-8"), order)


@pytest.mark.parametrize(
    "text",
    [
        "a = 1; b = 2\nc = 3\n",
        "# head\n\n@one\n# between\n@two(1)\nclass A:\n    def f(self): pass\n\n\nz = 'ä'; y = 1",
        "if a:\n    b\n# end of it\nelse:\n    c\n    # more\n# foot\n",
        "x = (  # why\n    1)\r\ny = 2\r\n",
        "@\\\none\ndef f(): ...\nx = 1\n",
        "if a: b; c\nx = [d\n for d in e]",
    ],
)
def test_odd_statements_have_the_spans_of_the_whole_tree(text: str) -> None:
    assert_same_places(text, list)


def test_a_node_of_another_tree_has_no_place() -> None:
    document = read_python(FileText(Path("a.py"), "x = 1\n"))
    stranger = cst.parse_module("x = 1\n").body[0]
    assert not document.holds(stranger)
    with pytest.raises(KeyError):
        document.span(stranger)


def test_a_node_that_a_document_holds_has_a_place_there() -> None:
    text = (ROOT / "lintfit/commands/check.py").read_text()
    document = read_python(FileText(Path("a.py"), text))
    assert document.module is not None
    held = [node for node in walk(document.module) if document.holds(node)]
    assert len(held) > 1000
    assert all(document.span(node).end <= len(text) for node in held)


@pytest.mark.parametrize("text", ["x = (1)", "x = (1)\n", "f(\n  a,  # one\n  b\n)\n", "if a:\n\tb()\n\n# end"])
def test_without_a_last_line_break(text: str) -> None:
    document = read_python(FileText(Path("a.py"), text))
    assert document.module is not None
    span = document.span(document.module.body[0])
    assert 0 == span.start < span.end <= len(text)


def test_a_tree_that_prints_another_text_is_placed_by_lines() -> None:
    text = "x = f(1)\ny = g(2)\n"
    module = cst.parse_module(text)
    assert spans_of(module, text + " ") is None
    assert len(lines_of(module)) > 0
