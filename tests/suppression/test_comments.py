"""Which comments silence what, in every kind of file."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lintfit.documents.directives import MOST, Directive, directives, without
from lintfit.documents.edits import apply
from lintfit.documents.model import Document, FileText, Kind, Span
from lintfit.documents.workspace import reader
from lintfit.findings.model import Finding, Related, Severity
from lintfit.settings.model import Place
from lintfit.suppression.comments import silence
from tests.support import ROOT

NAMES = {Kind.PYTHON: "train.py", Kind.YAML: "a.yaml", Kind.SHELL: "run.sh", Kind.JSON: "ds.json"}


def read(kind: Kind, text: str) -> Document:
    return reader(kind)(FileText(Path(NAMES[kind]), text))


def place(document: Document, mark: str) -> Place:
    start = document.text.index(mark)
    return Place(document, Span(start, start + len(mark)))


def finding(at: Place, *related: Place, rule: str = "forced-float32", code: str = "LF101") -> Finding:
    places = tuple(Related(other, "here") for other in related)
    return Finding(rule, code, Severity.ERROR, "message", at, places)


def silenced(kind: Kind, text: str, mark: str) -> bool:
    document = read(kind, text)
    return bool(silence([finding(place(document, mark))], [document]).ignored)


BEHIND = "x = model.float()  # lintfit: ignore[forced-float32] the loss needs it\ny = model.float(1)\n"


@pytest.mark.parametrize(
    ("text", "mark", "quiet"),
    [
        (BEHIND, "model.float()", True),
        (BEHIND, "model.float(1)", False),
        (BEHIND.replace("forced-float32", "LF101"), "model.float()", True),
        (BEHIND.replace("forced-float32", "duplicate-key, lf101"), "model.float()", True),
        (BEHIND.replace("forced-float32", "duplicate-key"), "model.float()", False),
        (BEHIND.replace("forced-float32", "LF1"), "model.float()", False),
        (BEHIND.replace("forced-float32", ""), "model.float()", False),
        (BEHIND.replace("  # lintfit", "  # type: ignore  # lintfit"), "model.float()", True),
        (BEHIND.replace("\n", "\r\n"), "model.float()", True),
        ("# lintfit: ignore[LF101]\nx = model.float()\ny = 1\n", "model.float()", True),
        ("# lintfit: ignore[LF101]\n# why\n\nx = model.float()\n", "model.float()", True),
        ("# noqa  # lintfit: ignore[LF101]\nx = model.float()\n", "model.float()", True),
        ("# lintfit: ignore[LF101]\ny = 1\nx = model.float()\n", "model.float()", False),
        ("# lintfit: ignore[LF101]\nif full:\n    model.float()\n", "model.float()", False),
        ("#lintfit:ignore[LF101]\nx = model.float()\n", "model.float()", True),
        # statements of several lines
        ("f(\n    model.float(),\n    2,\n)  # lintfit: ignore[LF101]\n", "model.float()", True),
        ("f(  # lintfit: ignore[LF101]\n    model.float(),\n    2,\n)\n", "model.float()", True),
        ("f(\n    model.float(),\n    2,  # lintfit: ignore[LF101]\n)\n", "model.float()", False),
        ("f(\n    model.float(),  # lintfit: ignore[LF101]\n    2,\n)\n", "model.float()", True),
        ("f(\n    # lintfit: ignore[LF101]\n    model.float(),\n    2,\n)\n", "model.float()", True),
        ("f(\n    # lintfit: ignore[LF101]\n    2,\n    model.float(),\n)\n", "model.float()", False),
        ("# lintfit: ignore[LF101]\nf(\n    1,\n    model.float(),\n)\ng()\n", "model.float()", True),
        ("# lintfit: ignore[LF101]\nf(\n    1,\n)\nmodel.float()\n", "model.float()", False),
        ("x = 1 + \\\n    model.float()  # lintfit: ignore[LF101]\n", "x = 1", True),
        # what only looks like a comment
        ('"""\n# lintfit: ignore[LF101]\n"""\nmodel.float()\n', "model.float()", False),
        ('x = "# lintfit: ignore[LF101]", model.float()\n', "model.float()", False),
        # the whole file
        ("model.float()\n# lintfit: file-ignore[LF101]\n", "model.float()", True),
        ("model.float()\n# lintfit: file-ignore[LF102]\n", "model.float()", False),
        # a text that is no Python further down
        ("model.float()  # lintfit: ignore[LF101]\nx = (\n", "model.float()", True),
    ],
)
def test_python(text: str, mark: str, quiet: bool) -> None:
    assert silenced(Kind.PYTHON, text, mark) is quiet


@pytest.mark.parametrize(
    ("text", "mark", "quiet"),
    [
        ("a: 1  # lintfit: ignore[LF101]\nb: 2\n", "a: 1", True),
        ("a: 1  # lintfit: ignore[LF101]\nb: 2\n", "b: 2", False),
        ("# lintfit: ignore[LF101]\na: 1\nb: 2\n", "a: 1", True),
        ("x:\n  # lintfit: ignore[LF101]\n  a: 1\n  b: 2\n", "b: 2", False),
        ("a: 1#lintfit: ignore[LF101]\n", "a: 1", False),
        ("a: '1 # lintfit: ignore[LF101]'\n", "a: ", False),
        ("a: |\n  # lintfit: ignore[LF101]\nb: 2\n", "b: 2", False),
        ("a: 1 // lintfit: ignore[LF101]\n", "a: 1", False),
        ("# lintfit: file-ignore[LF101]\nx: 1\na: 1\n", "a: 1", True),
        ("a: {b: 1,\n  # lintfit: ignore[LF101]\n  c: 2}\n", "c: 2", True),
    ],
)
def test_yaml(text: str, mark: str, quiet: bool) -> None:
    assert silenced(Kind.YAML, text, mark) is quiet


@pytest.mark.parametrize(
    ("text", "mark", "quiet"),
    [
        ('{\n  "a": 1, // lintfit: ignore[LF101]\n  "b": 2\n}\n', '"a"', True),
        ('{\n  "a": 1, # lintfit: ignore[LF101]\n  "b": 2\n}\n', '"a"', True),
        ('{\n  "a": 1, /* lintfit: ignore[LF101] why */\n  "b": 2\n}\n', '"a"', True),
        ('{\n  "a": 1, // lintfit: ignore[LF101]\n  "b": 2\n}\n', '"b"', False),
        ('{\n  // lintfit: ignore[LF101]\n  "a": 1,\n  "b": 2\n}\n', '"a"', True),
        ('{\n  /* lintfit: ignore[LF101] */\n  "a": 1,\n  "b": 2\n}\n', '"a"', True),
        ('{\n  /* lintfit: ignore[LF101] */ "a": 1,\n  "b": 2\n}\n', '"b"', False),
        ('{\n  "a": "# lintfit: ignore[LF101]",\n  "b": 2\n}\n', '"a"', False),
        ("{\n  a: word # lintfit: ignore[LF101]\n  b: 2\n}\n", "a: ", False),  # HJSON: all of it is the text
        ("// lintfit: file-ignore[LF101]\n{\n  a: 1\n}\n", "a: ", True),
        ('{\n  "a": {\n    "b": 1\n  } // lintfit: ignore[LF101]\n}\n', '{\n    "b": 1\n  }', True),
        ('{\n  "a": { // lintfit: ignore[LF101]\n    "b": 1\n  }\n}\n', "{ // lintfit", True),
        ('{\n  "a": { // lintfit: ignore[LF101]\n    "b": 1\n  }\n}\n', '"b"', False),
    ],
)
def test_json(text: str, mark: str, quiet: bool) -> None:
    assert silenced(Kind.JSON, text, mark) is quiet


LAUNCH = "# lintfit: ignore[LF101]\ntorchrun --nproc_per_node 8 \\\n    train.py \\\n    --bf16\necho done\n"


@pytest.mark.parametrize(
    ("text", "mark", "quiet"),
    [
        (LAUNCH, "torchrun", True),
        (LAUNCH, "--bf16", True),
        (LAUNCH, "echo", False),
        (LAUNCH.replace("\n", "\r\n"), "--bf16", True),
        (LAUNCH.replace("# lintfit: ignore[LF101]\n", "").replace("bf16", "bf16 # lintfit: ignore[LF101]"), "8", True),
        ("torchrun train.py '# lintfit: ignore[LF101]'\n", "torchrun", False),
        ("torchrun train.py --x#lintfit: ignore[LF101]\n", "torchrun", False),
        ("# lintfit: ignore[LF101]\ntorchrun train.py --name 'two\nlines' --bf16\n", "--bf16", True),
        ("#!/bin/bash\n#SBATCH --gres=gpu:8\n# lintfit: file-ignore[LF101]\ntorchrun a.py\n", "torchrun", True),
    ],
)
def test_shell(text: str, mark: str, quiet: bool) -> None:
    assert silenced(Kind.SHELL, text, mark) is quiet


def test_a_comment_at_a_related_place_counts() -> None:
    launch = read(Kind.SHELL, "torchrun train.py --bf16\n")
    script = read(Kind.PYTHON, "a = 1\nmodel.float()  # lintfit: ignore[LF101]\n")
    one = finding(place(launch, "--bf16"), place(script, "model.float()"))
    other = finding(place(launch, "--bf16"), place(script, "a = 1"))
    parts = silence([one, other], [launch, script])
    assert (parts.ignored, parts.left) == ((one,), (other,))
    whole = read(Kind.PYTHON, "a = 1  # lintfit: file-ignore[LF101]\n")
    assert silence([finding(place(launch, "--bf16"), place(whole, "a"))], [launch, whole]).ignored


def test_what_has_silenced_something_is_known() -> None:
    document = read(Kind.PYTHON, "model.float()  # lintfit: ignore[LF101, LF002]\n")
    (directive,) = directives(document)
    parts = silence([finding(place(document, "model.float()"))], [document])
    assert parts.uses(directive, "forced-float32")
    assert not parts.uses(directive, "duplicate-key")


def test_many_comments_and_findings_are_told_apart_as_one_by_one() -> None:
    lines = [f"model.float({i})" + ("  # lintfit: ignore[LF101]" if i % 3 else "") for i in range(40)]
    lines[9] = "# lintfit: ignore[LF101]\n# lintfit: ignore[LF101]\n" + lines[9]
    document = read(Kind.PYTHON, "\n".join(lines) + "\n")
    found = [finding(place(document, f"model.float({i})"), place(document, f"float({39 - i})")) for i in range(40)]
    parts = silence(found, [document])
    reaches = [[each for each in directives(document) if _reaches(each, one)] for one in found]
    assert parts.ignored == tuple(one for one, by in zip(found, reaches, strict=True) if by)
    assert {each.span for by in reaches for each in by} == {span for _, span, _ in parts.used}


def _reaches(directive: Directive, one: Finding) -> bool:
    return any(directive.reaches(each.span) for each in (one.place, *(related.place for related in one.related)))


def only(document: Document) -> Directive:
    (directive,) = directives(document)
    return directive


@pytest.mark.parametrize(
    ("kind", "text", "index", "after"),
    [
        (Kind.PYTHON, "x()  # lintfit: ignore[a] why\n", 0, "x()\n"),
        (Kind.PYTHON, "x()  # lintfit: ignore[a, b] why\n", 0, "x()  # lintfit: ignore[b] why\n"),
        (Kind.PYTHON, "x()  # lintfit: ignore[a, b]\n", 1, "x()  # lintfit: ignore[a]\n"),
        (Kind.PYTHON, "x()  # lintfit: ignore[a , b,c]\n", 1, "x()  # lintfit: ignore[a , c]\n"),
        (Kind.PYTHON, "x()  # lintfit: ignore[a] why  # noqa\n", 0, "x()  # noqa\n"),
        (Kind.PYTHON, "x()  # noqa  # lintfit: ignore[a]\n", 0, "x()  # noqa\n"),
        (Kind.PYTHON, "# noqa  # lintfit: ignore[a]\nx()\n", 0, "# noqa\nx()\n"),
        (Kind.PYTHON, "if x:\n    # lintfit: ignore[a]\n    y()\n", 0, "if x:\n    y()\n"),
        (Kind.PYTHON, "x()\r\n# lintfit: ignore[a]\r\ny()\r\n", 0, "x()\r\ny()\r\n"),
        (Kind.JSON, '{"a": 1 /* lintfit: ignore[a] */ , "b": 2}', 0, '{"a": 1 , "b": 2}'),
        (Kind.JSON, '{"a": 1 // lintfit: ignore[a]\n}', 0, '{"a": 1\n}'),
        (Kind.YAML, "a: 1 # lintfit: ignore[a]", 0, "a: 1"),
    ],
)
def test_taking_a_rule_out(kind: Kind, text: str, index: int, after: str) -> None:
    document = read(kind, text)
    directive = only(document)
    assert directive.names is not None
    assert apply(text, [without(directive, directive.names[index][1])]) == after


@pytest.mark.parametrize(
    ("names", "after"),
    [("a, b, a", "x()  # lintfit: ignore[b]\n"), ("b, a,a , c", "x()  # lintfit: ignore[b, c]\n"), ("a, a", "x()\n")],
)
def test_taking_out_a_rule_that_is_named_again(names: str, after: str) -> None:
    directive = only(read(Kind.PYTHON, f"x()  # lintfit: ignore[{names}]\n"))
    spans = [span for name, span in directive.names or () if name == "a"]
    assert apply(directive.document.text, [without(directive, *spans)]) == after


def test_json_comments_load_no_parser_of_another_language(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{\n// lintfit: ignore[LF002]\n"zero_optimization": {"stage": 2}}')
    code = (
        "import sys; sys.argv = ['lintfit', 'check', 'ds.json', '--isolated']\n"
        "from lintfit import __main__; __main__.run()\n"
        "print('modules', *{name.split('.')[0] for name in sys.modules})"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.partition("modules ")[2].split())
    assert "unused-ignore" in done.stdout
    assert not loaded & {"libcst", "ruamel", "tree_sitter", "rich", "jsonschema"}


def test_an_unrelated_text_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lintfit.documents.directives.layout", lambda document: pytest.fail("laid out"))
    assert directives(read(Kind.PYTHON, "x = 1  # noqa\n")) == ()


@pytest.mark.parametrize("sign", ["#", "//"])
@pytest.mark.parametrize(
    "comment",
    ["lintfit: ignore" + " " * 200_000 + "x", "lintfit: ignore" + " \t" * 100_000, "lintfit: ignore" + " # " * 60_000],
    ids=["blanks", "blanks at the end", "signs"],
)
def test_blanks_behind_a_comment_take_no_time(comment: str, sign: str) -> None:
    text = f'{sign} {comment}\n{{"zero_optimization": {{"stage": 2}}}}\n'
    before = time.process_time()
    (found,) = directives(read(Kind.JSON, text))
    assert found.word == "ignore"
    assert time.process_time() - before < 5


def test_signs_within_a_comment_and_comments_without_end_take_no_time() -> None:
    before = time.process_time()
    assert len(directives(read(Kind.PYTHON, "x = 1\n" + "# lintfit: ignore[" * 20_000 + "\n"))) == 1
    assert len(directives(read(Kind.PYTHON, "x = 1\n" + "# lintfit: ignore[LF101]\n" * 3_000))) == MOST
    assert time.process_time() - before < 20
