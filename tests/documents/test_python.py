"""Python: spans in every encoding and style, syntax errors, and edits of calls and statements."""

from __future__ import annotations

import ast
from pathlib import Path

import libcst as cst
import pytest

from lintfit.documents.edits import apply
from lintfit.documents.files import read_text
from lintfit.documents.model import FileText
from lintfit.documents.python_edits import (
    insert_statement_after,
    insert_statement_before,
    remove_keyword,
    remove_statement,
    replace,
    set_keyword,
)
from lintfit.documents.python_reader import PythonDocument, read_python


def read(text: str) -> PythonDocument:
    return read_python(FileText(Path("train.py"), text))


def nodes(document: PythonDocument, kind: type[cst.CSTNode]) -> list[cst.CSTNode]:
    found: list[cst.CSTNode] = []
    pending: list[cst.CSTNode] = [document.module] if document.module else []
    while pending:
        node = pending.pop(0)
        if isinstance(node, kind):
            found.append(node)
        pending[:0] = node.children
    return found


def call(document: PythonDocument) -> cst.Call:
    node = nodes(document, cst.Call)[0]
    assert isinstance(node, cst.Call)
    return node


def statement(document: PythonDocument, source: str) -> cst.BaseSmallStatement:
    for node in nodes(document, cst.BaseSmallStatement):
        assert isinstance(node, cst.BaseSmallStatement)
        if document.slice(document.span(node)) == source:
            return node
    raise AssertionError(source)


@pytest.mark.parametrize(
    "data",
    [
        b"x = f(1)\n",
        b"\xef\xbb\xbfx = f(1)\r\ny = 2\r\n",
        b"# coding: latin-1\ns = '\xe9'; x = f(1)\n",
        "s = '😀é'; x = f(1)  # ü\n".encode(),
        b"a = 1\r\nb = 2\nx = f(1)\n",
        b"a = 1\n\x0c\nx = f(1)\n",
        "s = '\u2028'\nx = f(1)\n".encode(),
        b"x = (f(1))\n",
        b"x = f(1)",
    ],
)
def test_spans_hold_the_exact_text(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(data)
    document = read_python(read_text(path))
    assert document.editable and not document.problems
    assert document.slice(document.span(call(document))) == "f(1)"


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("def f(:\n", ":", "invalid syntax"),
        ("x = [\n", "[", "never closed"),
        ("print 'x'\n", "p", "Missing parentheses"),
        ("é = 'ü' ü\n", "", ""),
        ("if x:\npass\n", "p", "expected an indented block"),
        ("(" * 5_000, "(", "too many nested parentheses"),
        ("x = " + "1 + " * 19_000 + "1\n", "", "nested too deeply"),
        ("x = a" + ".b()" * 12_000, "", "nested too deeply"),
        ("a\0", "", "null bytes"),
    ],
)
def test_syntax_errors_have_a_place_and_a_reason(text: str, place: str, reason: str) -> None:
    document = read(text)
    (problem,) = document.problems
    assert document.module is None and not document.editable
    assert problem.code == "syntax-error" and reason in problem.detail and "\n" not in problem.detail
    assert not place or document.slice(problem.span) == place


def test_text_that_lintfit_does_not_read_is_no_mistake_of_the_file() -> None:
    for text, reason in ((" " * ((4 << 20) + 1), "larger than 4 MiB"), ("x = 1\n" * 50_001, "more than 50000 lines")):
        document = read(text)
        (problem,) = document.problems
        assert document.module is None and (problem.code, reason in problem.detail) == ("not-read", True)


def test_newer_syntax_than_this_python_is_read() -> None:
    assert not read("type X = int\ndef f[T](x: T) -> T: ...\n").problems


def test_what_a_parser_accepts_is_known_of_a_text_that_is_parsed_already() -> None:
    document = read("def f():\n    return 1\n")
    assert document.module is not None
    assert not document.problems and document.facts["accepted"]
    old = read("print 1\n")
    assert old.problems and "accepted" not in old.facts


def test_text_that_the_tree_does_not_hold_is_not_editable() -> None:
    assert not read("x = 1\n\n   ").editable


SET = [
    ("f()", "f(x=9)"),
    ("f( )", "f(x=9 )"),
    ("f(a)", "f(a, x=9)"),
    ("f(a, x=1)", "f(a, x=9)"),
    ("f(x = (1 +\n 2), b=3)", "f(x = 9, b=3)"),
    ("f(x=[1])", "f(x=9)"),
    ("f(a=1,)", "f(a=1, x=9,)"),
    ("f(\n    a=1,\n)\n", "f(\n    a=1,\n    x=9,\n)\n"),
    ("f(\n    a=1\n)\n", "f(\n    a=1,\n    x=9\n)\n"),
    ("f(\n    a=1,  # c\n)\n", "f(\n    a=1,  # c\n    x=9,\n)\n"),
    ("f(\n    a=1  # c\n)\n", "f(\n    a=1,  # c\n    x=9\n)\n"),
    ("f(\r\n\ta=1,\r\n)\r\n", "f(\r\n\ta=1,\r\n\tx=9,\r\n)\r\n"),
    ("f(a,\n  b=2)\n", "f(a,\n  b=2,\n  x=9)\n"),
    ("f(**k)", "f(x=9, **k)"),
    ("f(a, **k)", "f(a, x=9, **k)"),
    ("f(\n  a=1,\n  **k,\n)", "f(\n  a=1,\n  x=9,\n  **k,\n)"),
    ("f(*a)", "f(*a, x=9)"),
    ("f(i for i in y)", "f((i for i in y), x=9)"),
    ("y = (f(a=(1)))", "y = (f(a=(1), x=9))"),
    ("f(a, b={\n  'c': 1,\n})\n", "f(a, b={\n  'c': 1,\n}, x=9)\n"),
]


@pytest.mark.parametrize(("text", "expected"), SET)
def test_keywords_are_set_in_the_calls_own_style(text: str, expected: str) -> None:
    document = read(text)
    result = apply(text, set_keyword(document, call(document), "x", "9"))
    assert result == expected
    tree = ast.parse(result)
    (found,) = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert [ast.unparse(item.value) for item in found.keywords if item.arg == "x"] == ["9"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "f(\n    per_device_train_batch_size=4,  # a GPU\n    bf16=True,\n)\n",
            "f(\n    per_device_train_batch_size=4,  # a GPU\n    per_device_eval_batch_size=2,\n    bf16=True,\n)\n",
        ),
        (
            "f(\n    bf16=True,\n    per_device_train_batch_size=4,\n)\n",
            "f(\n    bf16=True,\n    per_device_train_batch_size=4,\n    per_device_eval_batch_size=2,\n)\n",
        ),
        (
            "f(per_device_train_batch_size=4, bf16=True)\n",
            "f(per_device_train_batch_size=4, bf16=True, per_device_eval_batch_size=2)\n",
        ),
        (
            "f(\n    per_device_train_batch_size=4, bf16=True,\n    fp16=0,\n)\n",
            "f(\n    per_device_train_batch_size=4, bf16=True,\n    fp16=0,\n    per_device_eval_batch_size=2,\n)\n",
        ),
    ],
)
def test_a_batch_is_added_behind_the_other_batch(text: str, expected: str) -> None:
    document = read(text)
    assert apply(text, set_keyword(document, call(document), "per_device_eval_batch_size", "2")) == expected


REMOVE = [
    ("f(x=1)", "f()"),
    ("f(x=1,)", "f()"),
    ("f(a, x=1)", "f(a)"),
    ("f(x=1, b=2)", "f(b=2)"),
    ("f(a, x=1, b=2)", "f(a, b=2)"),
    ("f(a, x=1,)", "f(a,)"),
    ("f(\n    a=1,\n    x=2,  # c\n    b=3,\n)\n", "f(\n    a=1,\n    b=3,\n)\n"),
    ("f(\n    a=1,\n    x=2\n)\n", "f(\n    a=1,\n)\n"),
    ("f(a,\n  x=2)\n", "f(a)\n"),
    ("f(a,  # c\n  x=2)\n", "f(a,  # c\n  )\n"),
    ("f(a, x=1,  # c\n  b=2)\n", "f(a, # c\n  b=2)\n"),
    ("f(x=(1), b=2)", "f(b=2)"),
    ("f(a)", "f(a)"),
]


@pytest.mark.parametrize(("text", "expected"), REMOVE)
def test_keywords_are_removed_whole(text: str, expected: str) -> None:
    document = read(text)
    result = apply(text, remove_keyword(document, call(document), "x"))
    assert result == expected
    ast.parse(result)


DELETE = [
    ("a()\nx()\nb()\n", "a()\nb()\n"),
    ("# keep\nx()  # goes\nb()\n", "# keep\nb()\n"),
    ("if a:\n    x()\nb()\n", "if a:\n    pass\nb()\n"),
    ("if a:\n    x()\n    c()\n", "if a:\n    c()\n"),
    ("if a: x()\n", "if a: pass\n"),
    ("a(); x(); b()\n", "a(); b()\n"),
    ("a(); x()\n", "a()\n"),
    ("a()\nx()", "a()\n"),
    ("a()\r\nx()\r\nb()\r\n", "a()\r\nb()\r\n"),
    ("class A:\n\tdef f(self):\n\t\tx()  # why\n", "class A:\n\tdef f(self):\n\t\tpass  # why\n"),
    ("if a:\n    b()\nelse:\n    x()\nc()\n", "if a:\n    b()\nc()\n"),
    ("if a:\n    b()\nelse:  # otherwise\n    x()\nc()\n", "if a:\n    b()\nc()\n"),
    ("for a in b:\n    c()\nelse:\n    x()\n", "for a in b:\n    c()\nelse:\n    pass\n"),
]


@pytest.mark.parametrize(("text", "expected"), DELETE)
def test_statements_are_removed_with_their_lines(text: str, expected: str) -> None:
    document = read(text)
    result = apply(text, remove_statement(document, statement(document, "x()")))
    assert result == expected
    ast.parse(result)


INSERT = [
    ("a()\nx()\n", "a()\nn(1)\nm()\nx()\n", "a()\nx()\nn(1)\nm()\n"),
    ("if a:\n\tx()  # c\nb()\n", "if a:\n\tn(1)\n\tm()\n\tx()  # c\nb()\n", "if a:\n\tx()  # c\n\tn(1)\n\tm()\nb()\n"),
    ("x()", "n(1)\nm()\nx()", "x()\nn(1)\nm()"),
    (
        "if a:\n    b()\n    # Why.\n    # More.\n    x()\n",
        "if a:\n    b()\n    n(1)\n    m()\n    # Why.\n    # More.\n    x()\n",
        "if a:\n    b()\n    # Why.\n    # More.\n    x()\n    n(1)\n    m()\n",
    ),
    ("a()\r\n# Why.\r\nx()\r\n", "a()\r\nn(1)\r\nm()\r\n# Why.\r\nx()\r\n", "a()\r\n# Why.\r\nx()\r\nn(1)\r\nm()\r\n"),
    ("#!/bin/python\nx()\n", "#!/bin/python\nn(1)\nm()\nx()\n", "#!/bin/python\nx()\nn(1)\nm()\n"),
    ("a()\r\nx()\r\n", "a()\r\nn(1)\r\nm()\r\nx()\r\n", "a()\r\nx()\r\nn(1)\r\nm()\r\n"),
]


@pytest.mark.parametrize(("text", "before", "after"), INSERT)
def test_statements_are_inserted_in_the_block(text: str, before: str, after: str) -> None:
    document = read(text)
    target = statement(document, "x()")
    assert apply(text, insert_statement_before(document, target, "n(1)\nm()")) == before
    assert apply(text, insert_statement_after(document, target, "n(1)\nm()\n")) == after


def test_a_one_line_body_takes_one_more() -> None:
    text = "if a: x()\n"
    document = read(text)
    target = statement(document, "x()")
    assert apply(text, insert_statement_before(document, target, "n()")) == "if a: n(); x()\n"
    assert apply(text, insert_statement_after(document, target, "n()")) == "if a: x(); n()\n"


def test_compound_statements_and_decorators_are_whole() -> None:
    text = "@d\ndef f():\n    pass\n\n\n@e\nclass A:\n    x = 1\nb()\n"
    document = read(text)
    module = document.module
    assert module is not None
    function, class_ = module.body[0], module.body[1]
    assert isinstance(function, cst.FunctionDef) and isinstance(class_, cst.ClassDef)
    assert apply(text, insert_statement_before(document, function, "n()")).startswith("n()\n@d\n")
    assert apply(text, remove_statement(document, class_)) == "@d\ndef f():\n    pass\n\n\nb()\n"


def test_a_node_is_replaced_inside_its_parentheses() -> None:
    text = "x = (model.float())\n"
    document = read(text)
    assert apply(text, replace(document, call(document), "model")) == "x = (model)\n"


def test_nothing_is_parsed_before_it_is_asked_for() -> None:
    document = read("import django\n(")
    assert document._tree is None
