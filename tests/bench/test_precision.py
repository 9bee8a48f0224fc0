"""The judgements of findings on real configs, and their arithmetic."""

from __future__ import annotations

import pytest

from bench.precision import CORPUS, compare, judgements, precision, table
from tests.rules.pages import PAGES


def test_every_row_says_what_was_judged_and_why() -> None:
    assert len(judgements()) > 400
    for row in judgements():
        assert ("file" in row) != ("repo" in row)
        assert "file" in row or {"commit", "path"} <= row.keys()
        assert row["judgement"] in ("right", "wrong", "arguable")
        assert (PAGES / f"{row['rule']}.md").is_file(), row
        assert row["line"] > 0
        assert row["reason"]


def test_arguable_findings_count_against_the_precision() -> None:
    assert precision({"right": 9, "arguable": 1}) == 0.9
    result = {
        "rows": [
            {"rule": "a", "severity": "error", "judgement": "right", "count": 3},
            {"rule": "b", "severity": "error", "judgement": "wrong", "count": 1},
        ]
    }
    assert "| all | error | 3 | 1 | 0 | 75.0% |" in table(result)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not in this repository")
def test_today_s_findings_are_right() -> None:
    outcome = compare(None)
    assert not outcome.missing
    for severity, least in (("error", 0.95), ("warning", 0.9)):
        counts = {"right": 0, "wrong": 0, "arguable": 0}
        for (_, found, judgement), count in outcome.counts.items():
            if found == severity:
                counts[judgement] += count
        assert sum(counts.values()) >= 50
        assert precision(counts) >= least
