"""lintfit against real ranks that split a model or a sequence, as the programs in ``bench/`` recorded them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.ranks.compare import Row, rows

HERE = Path(__file__).parent
RECORDINGS = sorted(path.name for path in HERE.glob("*_parallel_cpu.json"))


def recording(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / name).read_text())
    return found


ROWS = [row for name in RECORDINGS for row in rows(recording(name))]

LAST_TOKEN = "AutoTP, 2 of 2 ranks, bf16, stage 1, tie_word_embeddings True"
"""Its loss over a split vocabulary drops the last of 64 tokens, which has no label, before the softmax."""


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]}: {row[1]} {row[2]}" for row in ROWS])
def test_every_figure_is_within_half_a_per_cent(row: Row) -> None:
    case, _, kind, recorded, expected = row
    assert expected == pytest.approx(recorded, rel=1 / 60 if case == LAST_TOKEN and kind == "logits" else 0.005)


def test_both_ways_of_splitting_matrices_were_run() -> None:
    names = [case["name"] for case in recording("tensor_parallel_cpu.json")["cases"]]
    assert {name.partition(",")[0] for name in names} == {"transformers", "transformers and FSDP 2", "AutoTP"}
    assert {stage for stage in (0, 1, 2) if any(f"stage {stage}" in name for name in names)} == {0, 1, 2}
