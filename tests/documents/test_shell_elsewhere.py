"""Commands in Makefiles and GitHub workflows, at their places in the real file."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from lintfit.documents.edits import apply
from lintfit.documents.files import kind_of
from lintfit.documents.model import FileText, Kind
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.shell_edits import set_flag
from lintfit.documents.shell_reader import read_shell


def makefile(text: str) -> ShellDocument:
    return read_shell(FileText(Path("Makefile"), text))


def commands(document: ShellDocument) -> list[list[str]]:
    return [[word.text for word in command.words] for command in document.commands]


def test_recipes_and_variables() -> None:
    document = makefile(
        "N ?= 4\nA = --n $(N)\nA += --m 2  # two\n\nall: clean\n\t@torchrun $(A) t.py\n\nclean:\n\t-rm -rf out\n"
    )
    assert commands(document) == [["torchrun", "--n", "4", "--m", "2", "t.py"], ["rm", "-rf", "out"]]


def test_the_last_assignment_counts_and_references_are_late() -> None:
    document = makefile("A = $(B)\nB = 1\nB = 2\nB ?= 3\nx:\n\tpython t.py $(A)\n")
    assert commands(document) == [["python", "t.py", "2"]]


def test_a_continued_recipe() -> None:
    assert commands(makefile("x:\n\tpython t.py \\\n\t  --a 1 \\\n  --b 2\ny: z\n")) == [
        ["python", "t.py", "--a", "1", "--b", "2"]
    ]


def test_what_make_leaves_to_the_shell_is_not_known() -> None:
    document = makefile("x:\n\tpython t.py --a $$HOME --b $@\n")
    words = document.commands[0].words
    assert [word.text for word in words[2:]] == ["--a", "$HOME", "--b", "$@"]
    assert words[5].value is None


def test_what_only_make_can_read_is_no_error() -> None:
    assert makefile("x:\n\tpython t.py ${\n").problems == ()


@pytest.mark.parametrize(("before", "after"), [("B = 8", "B = 1"), ("B := 8  # many", "B := 1  # many")])
def test_a_flag_is_changed_where_its_variable_is_set(before: str, after: str) -> None:
    text = f"{before}\nx:\n\tpython t.py --batch $(B)\n"
    document = makefile(text)
    edits = set_flag(document, document.commands[0], "--batch", "1")
    assert apply(text, edits) == text.replace(before, after)


WORKFLOW = dedent(
    """
    on: push
    jobs:
      a:
        steps:
          - uses: actions/checkout@v4
          - run: python one.py --x 1
          - name: two
            run: |
              export A=2
              python two.py --x $A \\
                --y ${{ matrix.y }}
          - run: "python three.py"
          - run: python four.py $A
    """
)


def workflow() -> ShellDocument:
    return read_shell(FileText(Path(".github/workflows/ci.yml"), WORKFLOW))


def test_steps_are_shells_of_their_own() -> None:
    found = [command for command in commands(workflow()) if command[0] == "python"]
    assert found[0] == ["python", "one.py", "--x", "1"]
    assert found[1][:5] == ["python", "two.py", "--x", "2", "--y"]
    assert found[2:] == [["python", "three.py"], ["python", "four.py", "$A"]]


def test_an_expression_of_github_is_not_known() -> None:
    two = next(command for command in workflow().commands if len(command.words) > 5)
    assert two.words[5].value is None


def test_a_step_is_edited_in_its_own_indentation() -> None:
    document = workflow()
    two = next(command for command in document.commands if len(command.words) > 5)
    changed = apply(WORKFLOW, set_flag(document, two, "--z", "3"))
    assert changed == WORKFLOW.replace("${{ matrix.y }}", "${{ matrix.y }} \\\n            --z 3")


@pytest.mark.parametrize("path", ["Makefile", "a/GNUmakefile", "rules.mk", ".github/workflows/x.yaml"])
def test_they_are_read_as_shell(path: str) -> None:
    assert kind_of(Path(path)) is Kind.SHELL


def test_other_yaml_is_not() -> None:
    assert kind_of(Path(".github/dependabot.yml")) is Kind.YAML
