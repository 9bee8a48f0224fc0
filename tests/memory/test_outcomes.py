"""Runs of which threads and READMEs tell whether they died out of memory; ``outcomes.jsonl`` has what each says.

The settings are those that the source states, else the defaults of the front end that it names (LLaMA-Factory
checkpoints and cuts at 1024 or 2048 tokens, ms-swift at 2048). Threads that leave out what decides are not here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Verdict

ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("outcomes.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("row", ROWS, ids=[row["source"].removeprefix("https://github.com/") for row in ROWS])
def test_the_verdict_is_no_other_than_what_happened(row: dict[str, Any]) -> None:
    found = estimate(spec_from_mapping(row["spec"]))
    fits = found.verdict is Verdict.FITS and not found.host_is_short
    if row["outcome"] == "died":
        assert not fits
    else:
        assert found.verdict in (Verdict.FITS, Verdict.TIGHT)
