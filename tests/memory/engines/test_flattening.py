"""Where ZeRO-1 and 2 flatten the parameters (stage_1_and_2.py ``flatten_on_accelerator``)."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.engines.flattening import flattening
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate, Verdict
from lintfit.memory.spec import GIB
from tests.support import published

MODEL = "meta-llama/Llama-2-7b-hf"
PARAMETERS = published(MODEL)


def _guess(memory: float, **more: Any) -> Estimate:
    spec = {
        "model": MODEL,
        "gpu_memory_gib": memory,
        "gpus": 4,
        "zero_stage": 2,
        "offload_optimizer": "cpu",
        "mixed_precision": "bf16",
        "micro_batch_size": 1,
        "seq_len": 512,
        "gradient_checkpointing": True,
        "deepspeed_config": {"zero_optimization": {"reduce_bucket_size": 50_000_000, "overlap_comm": False}},
        **more,
    }
    return estimate(spec_from_mapping(spec))


def _initialized(guess: Estimate) -> int:
    return next(moment.allocated for moment in guess.moments if moment.phase == "initialize")


def test_on_a_card_with_room_the_copy_stands_beside_the_parameters() -> None:
    assert _initialized(_guess(79.2)) == pytest.approx(4 * PARAMETERS, rel=1e-5)


def test_without_room_it_is_made_on_the_host_and_does_not_decide_the_verdict() -> None:
    guess = _guess(23.6, versions={"deepspeed": "0.19.8"})
    assert _initialized(guess) < 2.6 * PARAMETERS
    assert guess.verdict is Verdict.FITS
    assert guess.host.load_peak >= 4 * 4 * PARAMETERS


def test_before_0_19_it_is_always_made_on_the_host() -> None:
    guess = _guess(79.2, versions={"deepspeed": "0.18.9"})
    assert _initialized(guess) < 2.6 * PARAMETERS
    assert guess.host.load_peak >= 4 * 4 * PARAMETERS


def test_between_what_the_driver_and_what_torch_says_is_free_nobody_knows() -> None:
    room = 4 * PARAMETERS / GIB + 1.0  # for both copies, but not for the CUDA context and NCCL beside them
    guess = _guess(room)
    assert _initialized(guess) < 2.6 * PARAMETERS
    assert guess.verdict is Verdict.TIGHT


def test_of_a_card_that_nobody_names_room_is_taken_for_granted() -> None:
    spec = spec_from_mapping({"model": MODEL, "gpus": 2, "zero_stage": 1})
    assert flattening(spec, (0, 19, 8), 10, 10) == (10, 0, 0)
