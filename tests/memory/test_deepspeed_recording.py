"""Model states against what real DeepSpeed 0.19.8 held on a CPU (recorded by bench/ranks/zero.py)."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from bench.ranks.zero_compare import Row, rows

RECORDING = Path(__file__).parent / "deepspeed_cpu.json"


def recording() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDING.read_text())
    return found


ROWS = list(rows(recording()))


def test_the_recording_covers_stages_ranks_precisions_and_offload() -> None:
    cases = recording()["cases"]
    covered = {
        (case["config"]["zero_optimization"]["stage"], case["ranks"], case["precision"])
        for case in cases
        if "offload_optimizer" not in case["config"]["zero_optimization"]
    }
    assert covered == {(s, n, p) for s in (0, 1, 2, 3) for n in (1, 2, 4) for p in ("bf16", "fp32")}
    assert sum("zero_hpz_partition_size" in case["config"]["zero_optimization"] for case in cases) == 5
    assert sum("offload_param" in case["config"]["zero_optimization"] for case in cases) == 4


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]}: {row[1]} {row[2]}" for row in ROWS])
def test_every_figure_is_within_half_a_per_cent(row: Row) -> None:
    *_, recorded, expected = row
    assert expected == pytest.approx(recorded, rel=0.005)


@pytest.mark.peers
def test_a_fresh_run_says_what_the_recording_says(tmp_path: Path) -> None:
    if importlib.util.find_spec("deepspeed") is None:
        pytest.skip("needs the peers extra")
    from bench.ranks.zero import record

    record(tmp_path / "fresh.json", "stage 2, 2 ranks, bf16, accumulation 2")
    fresh = list(rows(json.loads((tmp_path / "fresh.json").read_text())))
    assert fresh == [row for row in ROWS if row[0] in {entry[0] for entry in fresh}]
