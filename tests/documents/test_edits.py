"""Splicing edits and showing them as a diff."""

from __future__ import annotations

import difflib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lintfit.documents.edits import apply, overlaps, shown_diff, unified_diff
from lintfit.documents.model import Edit, Span


def edit(start: int, end: int, text: str = "") -> Edit:
    return Edit(Span(start, end), text)


def test_edits_are_spliced_in_any_order() -> None:
    assert apply("abcdef", [edit(4, 5, "E"), edit(0, 0, ">"), edit(1, 3, "")]) == ">adEf"
    assert apply("abc", [edit(1, 1, "x"), edit(1, 1, "x")]) == "axbc"
    assert apply("abc", [edit(1, 2, "B"), edit(2, 3, "C"), edit(1, 1, "-"), edit(3, 3, "!")]) == "a-BC!"


@pytest.mark.parametrize(
    "edits",
    [
        [edit(0, 2), edit(1, 3)],
        [edit(1, 1, "a"), edit(1, 1, "b")],
        [edit(0, 3), edit(1, 1, "x")],
        [edit(0, 1, "a"), edit(0, 1, "b")],
    ],
)
def test_overlapping_edits_are_refused(edits: list[Edit]) -> None:
    assert overlaps(*edits) and overlaps(*reversed(edits))
    with pytest.raises(ValueError, match="overlap"):
        apply("abcdef", edits)


def test_an_edit_beyond_the_text_is_refused() -> None:
    with pytest.raises(ValueError, match="beyond"):
        apply("abc", [edit(2, 4)])


TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "\u2028\n", "\x0c", "c\r\n", "\n"]), max_size=8).map("".join)


@given(TEXTS, st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3), st.text("xy", max_size=2)), max_size=4))
def test_bytes_outside_the_edits_stay(text: str, raw: list[tuple[int, int, str]]) -> None:
    edits = [edit(start, start + length, new) for start, length, new in raw if start + length <= len(text)]
    try:
        result = apply(text, edits)
    except ValueError:
        assert any(overlaps(a, b) for a in edits for b in edits)
        return
    kept = [
        character for index, character in enumerate(text) if not any(e.span.start <= index < e.span.end for e in edits)
    ]
    added = sum(len(item.text) for item in set(edits))
    assert len(result) == len(kept) + added


@given(TEXTS, TEXTS)
def test_a_diff_turns_one_text_into_the_other(old: str, new: str) -> None:
    diff = unified_diff(Path("a/b.json"), old, new)
    assert (diff == "") == (old == new)
    if "\r" not in old + new and old and new and old != new:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "b.json").write_bytes(old.encode())
            command = ["patch", "-p0", "-s", "-o", "-", "b.json"]
            done = subprocess.run(command, input=diff.encode(), capture_output=True, cwd=folder)
            assert done.stdout == new.encode(), done.stderr


def test_a_diff_that_is_printed_steers_nothing() -> None:
    old = "a\r\n ::error::b\n\x1b[31m\u202ec\n"
    diff = shown_diff(Path("x\n::error::y\u202e.json"), old, old.replace("a", "d"))
    assert diff.splitlines()[0] == r'--- "x\012::error::y\342\200\256.json"'
    assert "-a\r\n+d\r\n" in diff and "\n  \\::error::b\n" in diff
    assert not any(character in diff for character in "\x1b\u202e")
    assert shown_diff(Path("a.json"), "a\n", "b\n") == unified_diff(Path("a.json"), "a\n", "b\n")


def test_a_diff_shows_what_moved_in_a_long_file() -> None:
    """Blank lines are many in a long file: they are no reason to show the longer block as the one that moved."""
    rest = "".join(f"line {number}\n\n" for number in range(150))
    moved, longer = "".join(f"a = {n}\n" for n in range(5)), "".join(f"b = {n}\n\n" for n in range(4))
    diff = unified_diff(Path("a.py"), f"{longer}{moved}{rest}", f"{moved}{longer}{rest}")
    assert [line for line in diff.splitlines() if line.startswith(("+a", "-a", "+b", "-b"))] == [
        *(f"+a = {n}" for n in range(5)),
        *(f"-a = {n}" for n in range(5)),
    ]


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_a_diff_of_a_short_file_is_the_standard_librarys(old: list[str], new: list[str]) -> None:
    before, after = ([f"{each}\n" for each in lines] for lines in (old, new))
    expected = "".join(difflib.unified_diff(before, after, "a.py", "a.py"))
    assert unified_diff(Path("a.py"), "".join(before), "".join(after)) == expected
