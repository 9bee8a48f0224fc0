"""The comments of every kind of document, and which of them a change loses."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.comments import comments, lost_comments
from lintfit.documents.files import kind_of
from lintfit.documents.model import Document, FileText
from lintfit.documents.workspace import reader

JSON = """\
# first
{
    "a": "no // comment, no # either", // second
    "b": 1, /* third
    goes on */ "c": /* fourth */ 2,
    word: no # comment // at all
}
"""
YAML = """\
# first
a: "no # comment"  # second
b: no#comment
c: |
  # a line of text
  more
d: [1, 2]  # third
"""
PYTHON = '''\
#!/usr/bin/env python
"""no # comment"""
a = "# none"  # second # and more
b = (  # third
    1
)
'''
SHELL = """\
#!/bin/bash
# second
echo "no # comment" 'nor # here' a#b $# ${#a}  # third
cat > ds.json <<EOF
# fourth: of the file that is written
EOF
"""


def read(name: str, text: str) -> Document:
    kind = kind_of(Path(name))
    assert kind is not None
    return reader(kind)(FileText(Path(name), text))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.json", JSON, ["# first", "// second", "/* third\n    goes on */", "/* fourth */"]),
        ("a.yaml", YAML, ["# first", "# second", "# third"]),
        ("a.py", PYTHON, ["#!/usr/bin/env python", "# second # and more", "# third"]),
        ("a.sh", SHELL, ["#!/bin/bash", "# second", "# third", "# fourth: of the file that is written"]),
        ("Makefile", "all:  # first\n\techo '# no'  # second\n", ["# first", "# second"]),
        ("a.py", "x = 1  # first\ny = (\n", ["# first"]),
        ("a.json", '{"a": 1}', []),
    ],
)
def test_comments(name: str, text: str, expected: list[str]) -> None:
    document = read(name, text)
    assert [document.slice(span) for span in comments(document)] == expected


@pytest.mark.parametrize(
    ("name", "before", "after", "expected"),
    [
        ("a.json", '{"a": 1, // one\n "b": 2 // two\n}', '{\n "b": 2 // two\n}', ["// one"]),
        ("a.json", '{"a": 1, // one\n "b": 2\n}', '{\n  // one\n  "b": 2\n}', []),
        ("a.json", '{"a": 1, // one\n "b": 2 // one\n}', '{"a": 1 // one\n}', ["// one"]),
        ("a.json", '{"a": 1 // one\n}', '{"a": "// one"}', ["// one"]),
        ("a.yaml", "a: 1  # one\nb: 2\n", "b: 2\n", ["# one"]),
        ("a.yaml", "a:\n  # one\n  b: 2\n", "a: {b: 2}  #  one\n", []),
        ("a.py", "f(\n    a=1,  # one\n    b=2,\n)\n", "f(\n    b=2,\n)\n", ["# one"]),
        ("a.py", "f(a)  # one\n", "with g:\n    f(a)  # one\n", []),
        ("a.sh", "run --a 1  # one\n", "run --a 1 --b 2  # one\n", []),
        ("a.sh", "# one\nrun --a 1\n", "run --a '# one'\n", ["# one"]),
    ],
)
def test_lost_comments(name: str, before: str, after: str, expected: list[str]) -> None:
    document = read(name, before)
    assert [document.slice(span) for span in lost_comments(document, read(name, after))] == expected
