"""Which Python libcst takes long for, told before it is asked."""

from __future__ import annotations

import ast

import pytest

from lintfit.documents.python_cost import takes_long

PLAIN = "trainer.train(args.a, [1, 2], b=c.d(e)[0])\n" * 300


def _long(text: str) -> bool:
    return takes_long(text, ast.parse(text).body)


def test_what_real_scripts_are_like_is_read() -> None:
    assert not _long(PLAIN)
    assert not _long(PLAIN + "x = [" + "f(a.b), " * 3000 + "]\n")  # one long line, and no chain


@pytest.mark.parametrize(
    "lines",
    [
        "x = a" + ".b()" * 600,
        "x = a" + ".b(c.d, [1, 2, 3], e=f)" * 200,
        "x = (a" + "\n .b()  # c" * 600 + "\n)",
        "x = a" + " * a + a" * 700,
        ("x = a" + ".b(c)" * 100 + "\n") * 100,
        ("x = " + "f(" * 180 + ")" * 180 + "\n") * 10,
        "x = a" + " and b or a" * 1200,
    ],
)
def test_chains_and_brackets_without_end_are_not(lines: str) -> None:
    assert _long(PLAIN + lines)
    assert takes_long(PLAIN + lines)


def test_what_stands_in_strings_and_comments_counts_for_nothing() -> None:
    brackets = "([{" * 2000
    assert not _long(PLAIN + f"x = '{brackets}'\n# {brackets}\ny = '''\n\"{brackets}\n'''\nz = \"'{brackets}\"\n")
    assert _long(PLAIN + ("x = " + 'f(")", ' * 150 + "1" + ")" * 150 + "\n") * 10)
