"""The twenty questions of public threads."""

from __future__ import annotations

import pytest

from bench import questions

ROWS = questions.questions()


def test_each_has_what_a_second_reader_needs() -> None:
    assert len(ROWS) == 20 and len({row["id"] for row in ROWS}) == 20
    for row in ROWS:
        assert row["source"].startswith("https://github.com/") and row["question"].endswith("?"), row["id"]
        assert row["answer"] and row["settings"] and row["says"] and row["command"]
        assert set(row["blind"]) >= {"answers", "why"} and set(row["now"]) == {"answers", "why"}


def test_figures_are_found_as_reports_write_them() -> None:
    row = {"id": "x", "command": None, "says": [], "files": {}, "figures": [["a", 25.5, 26.5]]}
    assert questions.answered(row).missing == ("a",)
    text = "memory of one GPU: 25.9 of 23.6 GiB\n  parameters    12.6     1.6   −11.0\n  saving  ██▌ 7.1 GiB\n"
    found = {float(amount) for amount in questions._GIB.findall(text)}
    assert {25.9, 7.1} <= found and 23.6 not in found


@pytest.mark.slow
def test_what_was_mended_stays_so() -> None:
    answers = [questions.answered(row) for row in ROWS if row["now"]["answers"]]
    assert sum(not each.missing for each in answers) >= questions.BAR - 1
    assert not [each.question["id"] for each in answers if "Traceback" in each.output or not each.output]
