"""Notebooks as text: their cells as Python and as shell, with every place and edit that of the JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lintfit.documents.edits import apply
from lintfit.documents.model import Document, Edit, FileText, Kind, Span
from lintfit.documents.notebook import NotNotebook, read_notebook
from lintfit.documents.notebook_code import as_python, magic_lines
from lintfit.documents.notebook_shell import as_shell


def notebook(*sources: str | list[str], indent: int | None = 1, ascii_only: bool = False, kind: str = "code") -> str:
    """The JSON of a notebook with these code cells, behind a first one of Markdown."""
    cells: list[dict[str, Any]] = [{"cell_type": "markdown", "metadata": {}, "source": ['# Ünder "this"\n', "x = 1"]}]
    for source in sources:
        outputs = [{"name": "stdout", "output_type": "stream", "text": ['a = "1"\n']}]
        cells.append(
            {"cell_type": kind, "execution_count": 1, "id": "ab", "metadata": {}, "outputs": outputs, "source": source}
        )
    whole = {"cells": cells, "metadata": {"accelerator": "GPU"}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=indent, ensure_ascii=ascii_only) + "\n"


def lines(source: str) -> list[str]:
    return source.splitlines(keepends=True)


def document(text: str, shell: bool = False) -> Document:
    file = FileText(Path("n.ipynb"), text)
    found = read_notebook(text)
    return Document(as_shell(file, found) if shell else as_python(file, found), Kind.PYTHON)


def sources(text: str) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"]]


@pytest.mark.parametrize("indent", [None, 1, 4])
def test_the_cells_are_one_script(indent: int | None) -> None:
    found = document(notebook(["import os\n", 'x = "a\\n"'], "y = 2\n", indent=indent))
    assert found.text == 'import os\nx = "a\\n"\ny = 2\n\n'


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("indent", [None, 1])
def test_every_character_is_where_it_stands_in_the_file(indent: int | None, ascii_only: bool) -> None:
    source = 'a = "\t\\\\ é 🤗 \\"b\\"" # {}\nb = 2'
    text = notebook(lines(source), source, indent=indent, ascii_only=ascii_only)
    found = document(text)
    assert found.file.within is not None
    for offset, character in enumerate(found.text[: len(source)]):
        if character != "\n":
            span = found.file.within.span(Span(offset, offset + 1))
            assert json.loads(f'"{text[span.start : span.end]}"') == character


def test_a_place_has_the_line_of_the_file_and_that_of_the_cell() -> None:
    text = notebook(["import os\n", "x = 1\n", "y = 2"], ["z = 3"])
    found = document(text)
    for name, cell, line in (("y = 2", 2, 3), ("z = 3", 3, 1)):
        offset = found.text.index(name)
        position = found.position(offset)
        assert text.split("\n")[position.line - 1][position.column - 1 :].startswith(name)
        assert (found.cell(offset).cell, found.cell(offset).line) == (cell, line)  # type: ignore[union-attr]


_LINE = st.text(st.sampled_from(list("ab =\"'\\#é🤗\t{}")), max_size=12)
_SOURCE = st.lists(_LINE, min_size=1, max_size=5).map("\n".join)


@given(
    cells=st.lists(st.tuples(_SOURCE, st.booleans()), min_size=1, max_size=3),
    indent=st.sampled_from([None, 1, 4]),
    ascii_only=st.booleans(),
    data=st.data(),
)
def test_an_edit_changes_the_source_of_its_cell_and_nothing_else(
    cells: list[tuple[str, bool]], indent: int | None, ascii_only: bool, data: st.DataObject
) -> None:
    """Whatever the form of the JSON: whole lines and parts of them, with line breaks in what comes and in what goes."""
    text = notebook(*(lines(s) if as_list and s else s for s, as_list in cells), indent=indent, ascii_only=ascii_only)
    found = read_notebook(text)
    which = data.draw(st.integers(0, len(found.cells) - 1))
    own = found.cells[which].source
    if not own:
        return
    start = data.draw(st.integers(0, len(own)))
    end = data.draw(st.integers(start, len(own)))
    new = data.draw(_SOURCE)
    # As it would be read, were every cell Python: the mapping does not ask what stands in a cell.
    from lintfit.documents.embedded import Embedder

    embedder = Embedder(text)
    for region, cell in enumerate(found.cells):
        cell.add_to(embedder, region, cell.source)
        embedder.made_up("\n")
    base = sum(len(cell.source) + 1 for cell in found.cells[:which])
    within = embedder.embedding(tuple(cell.style for cell in found.cells))
    after = apply(text, [within.edit(Edit(Span(base + start, base + end), new))])
    before, expected = sources(text), sources(text)
    expected[which + 1] = own[:start] + new + own[end:]
    assert sources(after) == expected
    assert before[which + 1] == own
    a, b = json.loads(text), json.loads(after)
    assert type(a["cells"][which + 1].pop("source")) is type(b["cells"][which + 1].pop("source"))
    assert a == b
    head = text.index("x = 1")
    assert after[:head] == text[:head]
    assert after.endswith(text[-40:])


def test_an_edit_that_reaches_into_another_cell_is_refused() -> None:
    found = document(notebook(["a = 1"], ["b = 2"]))
    with pytest.raises(ValueError, match="beyond"):
        found.edit_in_file(Edit(Span(0, len(found.text) - 1), ""))


def test_a_line_below_the_last_of_a_cell_stays_in_it() -> None:
    text = notebook(["a = 1"], ["%%bash\n", "ls"])
    found = document(text)
    after = apply(text, [found.edit_in_file(Edit(Span(6, 6), "b = 2\n"))])
    assert sources(after)[1:] == ["a = 1\nb = 2", "%%bash\nls"]


@pytest.mark.parametrize(
    ("source", "python"),
    [
        ("!pip install x", "pass"),
        ("%cd /content", "pass"),
        ("if a:\n    !ls -l\n", "if a:\n    pass\n"),
        ("files = !ls", "files = _"),
        ("%%capture\nx = 1", "\nx = 1"),
        ("%%bash\nx = 1", "\n"),
        ("%%writefile a.py\nx = 1", "\n"),
        ("trainer?", "pass"),
        ("!pip install \\\n  a \\\n  b\nx = 1", "pass\n\n\nx = 1"),
        ('text = """\n!pip\n%cd\n"""\n', 'text = """\n!pip\n%cd\n"""\n'),
        ("x = (a\n% b)", "x = (a\n% b)"),
        ("x = 'it''s'  # don't\n!ls 'a\ny = 1", "x = 'it''s'  # don't\npass\ny = 1"),
        ("this is no python (", ""),
        ("await f()", "await f()"),
    ],
)
def test_what_is_for_ipython_alone_does_nothing(source: str, python: str) -> None:
    found = document(notebook(lines(source)))
    assert [line.rstrip() for line in found.text.split("\n")] == [*python.split("\n"), ""]
    assert len(found.text) == len(source) + 1


def test_a_cell_that_cannot_be_parsed_costs_only_itself() -> None:
    found = document(notebook("a = 1", "print 'x'", "b = 2"))
    assert [line for line in found.text.split("\n") if line.strip()] == ["a = 1", "b = 2"]


def test_lines_in_brackets_are_not_ipythons() -> None:
    assert [line.sign for line in magic_lines("a = [\n!x\n]\n!y\n%z")] == ["!", "%"]


def test_the_shell_sees_commands_files_and_what_python_gives_them() -> None:
    text = notebook(
        ['MODEL = "a b"\n', "N = 4\n", 'os.environ["W"] = "1"'],
        ["%env CUDA_VISIBLE_DEVICES=0,1\n", "!torchrun --n {N} $MODEL \\\n", "  x.py"],
        ["if N:\n", "    !python a.py"],
        ["%%writefile c.json\n", '{"a": 1}'],
        ["%%bash\n", "python b.py"],
        ["%run d.py --x"],
    )
    found = document(text, shell=True)
    assert found.text.split("\n") == [
        "MODEL='a b'",
        "N=4",
        "export W=1",
        "export CUDA_VISIBLE_DEVICES=0,1",
        "torchrun --n ${N} $MODEL \\",
        "  x.py",
        'if [ "$_of_python" ]; then',
        "python a.py",
        "fi",
        "cat > c.json <<'LINTFIT_END_OF_CELL'",
        '{"a": 1}',
        "LINTFIT_END_OF_CELL",
        "(",
        "",
        "python b.py",
        ")",
        "python  d.py --x",
        "",
    ]
    for word, line in (("x.py", '"  x.py"'), ('{"a"', '"{\\"a\\": 1}"'), ("python b.py", '"python b.py"')):
        position = found.position(found.text.index(word))
        assert text.split("\n")[position.line - 1].strip() == line


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "line 1 is no JSON"),
        ('{"cells": [\n}', "line 2 is no JSON"),
        ("[]", "no list of cells"),
        ('{"worksheets": []}', "nbformat 3"),
        ("[" * 100_000, "nested too deeply"),
        ('{"cells": [], "x": [' + "[]," * 3_100_000 + "0]}", "more than 3000000 lists, mappings and keys"),
    ],
)
def test_what_is_no_notebook_says_why(text: str, why: str) -> None:
    with pytest.raises(NotNotebook, match=why):
        read_notebook(text)


@pytest.mark.parametrize("deep", [1, 900])
def test_outputs_are_passed_over(deep: int) -> None:
    """However deep they are nested, and whatever brackets their strings hold."""
    output = '{"data": {"text/plain": ["]}[", "\\"{"]}, "more": ' + "[" * deep + "1" + "]" * deep + "}"
    cells = f'[{{"outputs": [{output}], "source": ["a"], "cell_type": "code", "x": {{}}}}]'
    text = f'{{"metadata": {{"k": [{output}]}}, "cells": {cells}, "nbformat": 4}}'
    assert [cell.source for cell in read_notebook(text).cells] == ["a"]


@pytest.mark.parametrize(
    "cells",
    [
        "1",
        "[1, null]",
        '[{"cell_type": "code"}]',
        '[{"cell_type": "code", "source": 3}]',
        '[{"cell_type": 7, "source": ["a"]}]',
        '[{"source": [1, "a"], "cell_type": "code"}]',
    ],
)
def test_odd_cells_are_passed_over(cells: str) -> None:
    text = f'{{"cells": {cells}, "metadata": []}}'
    if cells == "1":
        with pytest.raises(NotNotebook):
            read_notebook(text)
    else:
        assert "".join(cell.source for cell in read_notebook(text).cells) in ("", "a")


def test_of_several_lists_of_cells_the_last_counts() -> None:
    cell = '{"cell_type": "code", "source": "x = 1"}'
    text = f'{{"nbformat": 4, "cells": [{cell}, {cell}], "cells": 1, "cells": {{"a": []}}, "cells": [{cell}]}}'
    assert [each.source for each in read_notebook(text).cells] == ["x = 1"]
