"""The counter of steps, and that everything that evaluates users' text ends when it is spent."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.limits import TOO_MANY
from lintfit.documents.model import FileText
from lintfit.documents.shell_arithmetic import calculate
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.shell_reader import read_shell
from lintfit.documents.steps import Steps
from lintfit.documents.yaml_reader import read_yaml


def test_steps_are_taken_until_there_are_none() -> None:
    steps = Steps(3, "values")
    assert steps.take(2) and steps.take() and not steps.spent and steps.reason == ""
    assert not steps.take() and steps.spent and steps.taken == 3
    assert steps.reason == "more than 3 values: what comes after is not followed"


def test_what_is_spent_stays_so() -> None:
    steps = Steps(3, "values")
    assert not steps.take(4)
    assert not steps.take()


def test_a_part_draws_from_the_whole() -> None:
    steps = Steps(10, "values")
    part = steps.within(4, "files")
    assert part.take(4) and not part.take()
    assert part.reason == "more than 4 files: what comes after is not followed" and not steps.spent
    assert steps.reason == part.reason
    assert steps.take(6) and not steps.take()


def test_the_whole_says_which_part_is_too_large() -> None:
    steps = Steps(10, "values")
    assert steps.allows(4, 4, "files") and steps.reason == ""
    assert not steps.allows(5, 4, "files") and not steps.spent
    assert steps.reason == "more than 4 files: what comes after is not followed"
    assert not steps.take(11)
    assert steps.reason == "more than 10 values: what comes after is not followed"


def test_a_part_ends_with_the_whole() -> None:
    steps = Steps(2, "values")
    part = steps.within(4, "files")
    assert not part.take(3) and part.spent and steps.spent
    assert part.reason == steps.reason == "more than 2 values: what comes after is not followed"


def shell(text: str, path: str = "run.sh") -> ShellDocument:
    return read_shell(FileText(Path(path), text))


def again(text: str, path: str = "run.sh") -> ShellDocument:
    """The same script with another text: what one text was read as is kept."""
    return shell(f"{text}# again\n", path)


def details(document: ShellDocument) -> list[str]:
    return [problem.detail for problem in document.problems]


def test_a_shell_script(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "A=one\nB=$A\npython $B\npython $A\n"
    assert [command.words[-1].value for command in shell(text).commands] == ["one", "one"]
    monkeypatch.setattr("lintfit.documents.shell_reader.MAX_STEPS", 5)  # the program, its words, the value of A
    found = again(text)
    assert found.commands == ()
    assert details(found) == ["more than 5 steps of a shell script: what comes after is not followed"]


def test_variables_and_recipes_of_a_makefile_draw_from_one_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "A = one\nB = $(A)\ntrain:\n\tpython $(B)\n"
    assert [command.words[-1].value for command in shell(text, "Makefile").commands] == ["one"]
    monkeypatch.setattr("lintfit.documents.shell_reader.MAX_STEPS", 3)
    found = again(text, "Makefile")
    assert details(found) == ["more than 3 steps of a shell script: what comes after is not followed"]


def test_steps_of_a_workflow(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "jobs:\n  a:\n    steps:\n      - run: python a.py\n      - run: python b.py\n"
    path = ".github/workflows/a.yml"
    assert len(shell(text, path).commands) == 2 and not details(shell(text, path))
    monkeypatch.setattr("lintfit.documents.shell_reader.MAX_STEPS", 4)  # what is above it, its program and command
    found = again(text, path)
    assert len(found.commands) == 1
    assert details(found) == ["more than 4 steps of a shell script: what comes after is not followed"]


def test_a_command_of_too_many_words(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not details(shell("python a.py 1 2 3\n"))
    monkeypatch.setattr("lintfit.documents.shell_variables.MOST_WORDS", 3)
    found = again("python a.py 1 2 3\n")
    assert len(found.commands[0].words) == 3
    assert details(found) == ["more than 3 words of one command: what comes after is not followed"]


def test_functions_of_a_shell_script_that_call_each_other_without_end() -> None:
    calls = "".join(f"f{n}() {{ {f'f{n + 1};' * 40} }}\n" for n in range(40))
    found = shell(f"{calls}f40() {{ python deep.py; }}\nf0\npython train.py\n")
    assert [command.words[-1].value for command in found.commands] == ["train.py"]
    assert details(found) == ["more than 100 calls of functions: what comes after is not followed"]


def test_values_of_a_shell_script_that_hold_each_other_many_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lintfit.documents.shell_reader.MAX_STEPS", 20_000)
    values = "V0=(" + "a " * 400 + ")\n" + "python " + '"${V0[@]}"' * 400 + "\n"
    found = shell(values)
    assert found.problems and "steps of a shell script" in found.problems[0].detail


def test_arithmetic() -> None:
    assert calculate("1+2*3", Steps(5, "signs")) == 7
    assert calculate("1+2*3", Steps(4, "signs")) is None


def test_aliases_of_a_yaml_file(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: &a [1, 2, 3]\nb: [*a, *a]\n"
    assert read_yaml(FileText(Path("a.yaml"), text)).problems == ()
    monkeypatch.setattr("lintfit.documents.yaml_reader.MAX_VALUES", 12)
    (problem,) = read_yaml(FileText(Path("a.yaml"), f"{text}# another text: that of one is kept\n")).problems
    assert problem.detail == TOO_MANY
