"""A number that a script works others out from is edited where it stands, and no literal breaks the relation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lintfit.documents.edits import apply
from lintfit.documents.model import Edit, FileText, Span
from lintfit.documents.shell_computed import in_variable, referenced
from lintfit.documents.shell_document import ShellDocument
from lintfit.documents.shell_edits import set_flag
from lintfit.documents.shell_reader import read_shell

SETUP = "GLOBAL=${GLOBAL:-$DEFAULT_GLOBAL}\nSTEPS=${STEPS:-$DEFAULT_STEPS}\nMICRO=$((GLOBAL / 8 / STEPS))\n"
LAUNCH = "DEFAULT_GLOBAL=64\nDEFAULT_STEPS=1\nsource setup.sh\ntrain --micro $MICRO --steps=$STEPS --seed 1\n"
ALONE = 'GLOBAL=64\nSTEPS=1\nMICRO=$((GLOBAL / 8 / STEPS))\ntrain --micro "$MICRO" --steps $STEPS --seed 1\n'


def read(text: str) -> ShellDocument:
    def open_text(path: Path) -> FileText | None:
        return FileText(path, SETUP) if path.name == "setup.sh" else None

    return read_shell(FileText(Path("run.sh"), text), open_text)


@pytest.mark.parametrize(("text", "name"), [(LAUNCH, "DEFAULT_STEPS"), (ALONE, "STEPS")])
def test_the_number_behind_is_written_and_the_other_follows(text: str, name: str) -> None:
    document = read(text)
    edits = set_flag(document, document.commands[-1], "--steps", "4")
    after = apply(text, edits)
    assert after == text.replace(f"{name}=1\n", f"{name}=4\n")
    words = [word.text for word in read(after).commands[-1].words]
    assert words[2] == "2"
    assert set_flag(read(after), read(after).commands[-1], "--micro", "2") == ()


@pytest.mark.parametrize("text", [LAUNCH, ALONE])
def test_what_is_worked_out_is_no_literal(text: str) -> None:
    document = read(text)
    with pytest.raises(ValueError, match="worked out"):
        set_flag(document, document.commands[-1], "--micro", "2")


def test_a_number_that_something_else_takes_too_is_left_alone() -> None:
    text = LAUNCH.replace("--seed 1", "--seed $DEFAULT_STEPS")
    document = read(text)
    after = apply(text, set_flag(document, document.commands[-1], "--steps", "4"))
    assert after == text.replace("--steps=$STEPS", "--steps=4")


def test_a_variable_that_has_come_to_what_was_written_for_it_stands_again() -> None:
    text = "MICRO=16\ntrain --micro $MICRO --eval $MICRO\n"
    assert referenced(read(text), "MICRO=2\ntrain --micro 2 --eval $MICRO\n") == text.replace("16", "2")
    apart = "MICRO=1\ntrain --micro 2 --eval $MICRO\n"
    assert referenced(read(text), apart) == apart


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('CONFIG=a.json\nrun --x "$CONFIG" --y "$CONFIG"\n', 'CONFIG=b.json\nrun --x "$CONFIG" --y "$CONFIG"\n'),
        ('CONFIG=a.json\nrun --x "$CONFIG" --y "$CONFIG"\necho $CONFIG\n', None),  # somebody else's, too
        ('CONFIG=a.json\nCONFIG=c.json\nrun --x "$CONFIG" --y "$CONFIG"\n', None),
        ("CONFIG=$1\nrun --x $CONFIG --y $CONFIG\n", None),
        ("CONFIG=a.json\nrun --x=$CONFIG --y=$CONFIG\n", "CONFIG=b.json\nrun --x=$CONFIG --y=$CONFIG\n"),
        ("run --x a.json --y a.json\n", None),
    ],
)
def test_all_words_that_are_a_variable_are_changed_where_it_is_set(script: str, expected: str | None) -> None:
    words = [Span(*match.span(1)) for match in re.finditer(r"--[xy][ =](\S+)", script)]
    edit = in_variable(script, [Edit(word, "b.json") for word in words])
    assert (apply(script, [edit]) if edit is not None else None) == expected


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("--eval $B", "B=1\ntrain --batch $B {}\n"),
        ("--seed $B", "B=8\ntrain --batch 1 {}\n"),
        ("--eval $B --seed $B", "B=8\ntrain --batch 1 {}\n"),
        ("--eval 8", "B=1\ntrain --batch $B {}\n"),
    ],
)
def test_a_flag_that_is_to_follow_does_by_their_variable(other: str, expected: str) -> None:
    text = f"B=8\ntrain --batch $B {other}\n"
    document = read(text)
    edits = set_flag(document, document.commands[-1], "--batch", "1", follower="--eval")
    assert apply(text, edits) == expected.format(other)
