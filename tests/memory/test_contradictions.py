"""Specs that cannot be: one line that names the key, the value and what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.contradictions import SpecError
from lintfit.memory.parse import spec_from_mapping

MODEL = "meta-llama/Llama-2-7b-hf"


def _zero(**keys: Any) -> dict[str, Any]:
    return {"gpus": 8, "deepspeed_config": {"zero_optimization": {"stage": 3, **keys}}}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"zero_stage": 3, "gpus": 0}, "gpus: 0 must be a whole number from 1"),
        (
            {"optimizer": "adamw_trch"},
            "optimizer: 'adamw_trch' is no optimizer that is known (did you mean 'adamw_torch'?)",
        ),
        ({"versions": {"transformers": "main"}}, "versions.transformers: 'main' must be a version"),
        (_zero(reduce_bucket_size=1e300), "zero_optimization.reduce_bucket_size: 1e+300 must be a number up to"),
        (_zero(reduce_bucket_size=-1), "zero_optimization.reduce_bucket_size: -1 must not be negative"),
        (_zero(mics_shard_size=3), "zero_optimization.mics_shard_size: 3 does not divide gpus (8)"),
        (_zero(zero_hpz_partition_size=5), "zero_optimization.zero_hpz_partition_size: 5 does not divide gpus (8)"),
        ({"zero_stage": 3, "engine": "ddp"}, "zero_stage: 3 needs engine 'deepspeed'"),
        ({"gpus": 6, "tensor_parallel": 4}, "gpus: 6 is no multiple"),
    ],
)
def test_one_line_says_what_is_wrong(more: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec_from_mapping({"model": MODEL, **more})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_targets_that_match_nothing_are_said_to() -> None:
    guess = estimate(spec_from_mapping({"model": MODEL, "lora_targets": ["query_key_value"]}))
    assert any("lora_targets name no module" in line for line in guess.assumptions)


def test_what_only_looks_wrong_is_taken() -> None:
    spec_from_mapping({"model": MODEL, **_zero(stage3_model_persistence_threshold=2**63 - 1, mics_shard_size=4)})
    spec_from_mapping({"model": MODEL, "optimizer": "galore_adamw"})
    spec_from_mapping({"model": MODEL, "lora_targets": ["lm_head"]})
    spec_from_mapping({"model": "mistralai/Mixtral-8x7B-v0.1", "lora_targets": ["w1"]})
