"""Which lines of a text became which of another."""

from __future__ import annotations

from time import process_time

from hypothesis import given
from hypothesis import strategies as st

from lintfit.documents.line_changes import line_changes

LINES = st.lists(st.sampled_from(["", "a", "b", "c"]), max_size=12)


def test_what_begins_and_ends_alike_is_no_change() -> None:
    assert [*line_changes(["a", "b", "c"], ["a", "x", "y", "c"])] == [(1, 2, 1, 3)]
    assert [*line_changes(["", "", ""], ["", "", "", ""])] == [(3, 3, 3, 4)]
    assert not [*line_changes(["a"], ["a"])]


@given(LINES, LINES)
def test_the_changes_lead_from_one_text_to_the_other(old: list[str], new: list[str]) -> None:
    made, at = list[str](), 0
    for first, last, begin, end in line_changes(old, new):
        made += [*old[at:first], *new[begin:end]]
        at = last
    assert [*made, *old[at:]] == new


def test_many_lines_that_are_alike_take_no_longer() -> None:
    old = ["top", *[""] * 40_000, "x", *[""] * 40_000, "end"]
    new = ["top", *[""] * 40_000, "y", *[""] * 39_999, "z", "end"]
    started = process_time()
    found = [*line_changes(old, new)]
    assert found
    assert process_time() - started < 5
