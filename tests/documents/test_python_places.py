"""Spans of Python nodes are those of libcst's own provider."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from lintfit.documents.model import FileText
from lintfit.documents.python_places import lines_of, spans_of
from lintfit.documents.python_reader import read_python

ROOT = Path(__file__).resolve().parents[2]
FILES = ("lintfit/documents/shell_reader.py", "lintfit/engine.py", "tests/sources/test_script.py")
WITHOUT_A_PLACE = (cst.Module, cst.Newline, cst.TrailingWhitespace)


@pytest.mark.parametrize("name", FILES)
def test_spans_of_every_node(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    document = read_python(FileText(Path(name), text))
    module = document.module
    assert module is not None
    spans = spans_of(module, text)
    assert spans is not None
    for node, place in lines_of(module).items():
        if isinstance(node, WITHOUT_A_PLACE):
            continue
        start = document.offset(place.start.line, place.start.column + 1)
        assert spans[node] == (start, document.offset(place.end.line, place.end.column + 1))


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
