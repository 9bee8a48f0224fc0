"""What going on from a checkpoint takes beside what stays."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.explain import at, host
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate

GIB = 2**30
NEO = 1_315_575_808
"""Parameters of GPT-Neo 1.3B with its tied head, as published."""


def found(**more: Any) -> Estimate:
    run: dict[str, Any] = {
        "model": "EleutherAI/gpt-neo-1.3B",
        "micro_batch_size": 1,
        "seq_len": 256,
        "optimizer": "adamw_torch",
        "weights_dtype": "fp32",
        "resumes": True,
    }
    return estimate(spec_from_mapping({**run, **more}))


def _copies(result: Estimate) -> int:
    return result.largest["resume"].components.get("temporaries", 0)


def test_a_run_that_begins_has_no_such_phase() -> None:
    fresh = found(resumes=False)
    assert "resume" not in fresh.largest and not fresh.host.resume
    assert "resume" not in fresh.to_json()["phases"] and "resume" in found().to_json()["phases"]


@pytest.mark.parametrize(
    ("versions", "gpus", "copies", "host"),
    [
        ({"transformers": "4.27.4", "torch": "1.13.1"}, 1, 8, 4),
        ({"transformers": "4.27.4", "torch": "2.1.0"}, 1, 0, 4),
        ({"transformers": "4.28.0", "torch": "2.0.1"}, 1, 0, 8),
        ({"transformers": "4.30.0"}, 1, 0, 8),
        ({"transformers": "4.30.0", "torch": "2.0.1"}, 2, 8, 8),
        ({"transformers": "4.40.0", "torch": "2.2.0"}, 2, 0, 8),
        ({"transformers": "4.30.0"}, 2, 0, 8),
        ({}, 1, 0, 8),
    ],
)
def test_where_the_states_are_read(versions: dict[str, str], gpus: int, copies: int, host: int) -> None:
    """Bytes of a parameter: of further copies on the GPU, and on the host (of DDP the weights of both ranks)."""
    result = found(versions=versions, gpus=gpus)
    assert _copies(result) == pytest.approx(copies * NEO, rel=0.01)
    assert result.host.resume == pytest.approx(host * NEO, rel=0.01)
    assert result.largest["resume"].components["optimizer_states"] == pytest.approx(8 * NEO, rel=0.01)


def test_a_torch_that_nobody_states_is_the_newest_and_the_high_end_has_one_of_the_time() -> None:
    old, new, open_ = (
        found(versions={"transformers": "4.30.0", **torch}, gpus=2)
        for torch in ({"torch": "2.0.1"}, {"torch": "2.1.0"}, {})
    )
    assert open_.peak.likely == new.peak.likely < old.peak.likely
    assert open_.peak.high == old.peak.high
    assert any("torch before 2.1" in line for line in open_.assumptions)


def test_every_rank_of_deepspeed_reads_its_part_on_the_host() -> None:
    """transformers#17258: 12 bytes of every parameter, once more while they are read."""
    fresh = {"engine": "deepspeed", "zero_stage": 3, "offload_optimizer": "cpu", "gpus": 2, "mixed_precision": "fp16"}
    going_on = found(**fresh)
    assert going_on.host.resume == pytest.approx(12 * NEO, rel=0.01)
    assert going_on.host.peak == found(**fresh, resumes=False).host.steady + going_on.host.resume
    assert _copies(going_on) == 0, "its states are on the host"


def test_new_states_are_made_beside_the_old_ones() -> None:
    result = found(engine="deepspeed", zero_stage=3, gpus=4, mixed_precision="bf16")
    assert _copies(result) == pytest.approx(8 * NEO / 4, rel=0.01)


def test_one_rank_of_fsdp_reads_all_states() -> None:
    result = found(engine="fsdp", fsdp={"version": 1, "strategy": "FULL_SHARD"}, gpus=4, mixed_precision="bf16")
    assert result.host.resume == pytest.approx(8 * NEO, rel=0.01)


@pytest.mark.parametrize("engine", [{}, {"gpus": 2}, {"engine": "deepspeed", "zero_stage": 2, "gpus": 2}])
def test_terms_add_up(engine: dict[str, Any]) -> None:
    stated = {"versions": {"transformers": "4.27.4"}, **engine}
    spec = spec_from_mapping({"model": "EleutherAI/gpt-neo-1.3B", "resumes": True, "micro_batch_size": 1, **stated})
    result = estimate(spec)
    moment = result.largest["resume"]
    for part in at(spec, result, moment):
        assert part.size == moment.components[part.component]
    assert sum(term.size for term in host(spec, result)) == result.host.peak
