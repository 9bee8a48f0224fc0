"""What saving takes where nothing is sharded."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.fit.bounds import floor
from lintfit.frozen import replace
from lintfit.memory import estimate
from lintfit.memory.engines.model_states import states
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate

GIB = 2**30
INT8 = 32 * (4 * 4096 * 4096 + 3 * 4096 * 11008)
"""Bytes of LLaMA-7B's layers in 8 bits."""


def found(**more: Any) -> Estimate:
    """alpaca-lora's run of May 2023."""
    run: dict[str, Any] = {
        "model": "huggyllama/llama-7b",
        "gpu": "T4",
        "method": "lora",
        "lora_rank": 8,
        "lora_targets": ["q_proj", "v_proj"],
        "quantization": "int8",
        "weights_dtype": "fp16",
        "mixed_precision": "fp16",
        "micro_batch_size": 2,
        "seq_len": 256,
        "gradient_checkpointing": True,
        "kbit_upcast": "norms",
        "versions": {"transformers": "4.28.1"},
    }
    return estimate(spec_from_mapping({**run, **more}))


def saved(version: str, **more: Any) -> int:
    versions = {"transformers": "4.28.1", "bitsandbytes": version}
    moments = found(**more, versions=versions).moments
    return next(moment.allocated for moment in moments if moment.phase == "save")


@pytest.mark.parametrize(
    ("version", "copies"), [("0.37.2", 0), ("0.38.0", 2), ("0.38.1", 2), ("0.39.0", 2), ("0.39.1", 0), ("0.43.1", 0)]
)
def test_bitsandbytes_0_38_copies_int8_weights_to_save_them(version: str, copies: int) -> None:
    assert saved(version) - saved("0.37.2") == copies * INT8


@pytest.mark.parametrize("more", [{"gpu": "V100-16GB"}, {"quantization": "nf4"}])
def test_what_has_no_layout_of_its_own_is_not_copied(more: dict[str, Any]) -> None:
    assert saved("0.38.1", **more) == saved("0.37.2", **more)


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({}, "tight"),
        ({"gpu": "V100-16GB"}, "fits"),
        ({"versions": {"transformers": "4.28.1", "bitsandbytes": "0.38.1"}}, "does-not-fit"),
        ({"versions": {"transformers": "4.28.1", "bitsandbytes": "0.37.2"}}, "fits"),
        ({"versions": {"transformers": "4.40.0"}}, "fits"),
    ],
)
def test_a_run_of_those_months_may_die_as_it_saves(more: dict[str, Any], verdict: str) -> None:
    assert str(found(**more).verdict) == verdict


T4_OF_THE_4BIT_BLOG: dict[str, Any] = {
    "model": "decapoda-research/llama-7b-hf",
    "gpu": "T4",
    "method": "lora",
    "quantization": "int8",
    "weights_dtype": "fp16",
    "micro_batch_size": 1,
    "seq_len": 512,
    "gradient_checkpointing": True,
    "versions": {"transformers": "4.30.0", "bitsandbytes": "0.39.0"},
}


def test_a_run_that_only_trains() -> None:
    """huggingface/blog 4bit-transformers-bitsandbytes.md: LLaMA-7B in 8 bits, checkpointed, trains on a T4."""
    saving = estimate(spec_from_mapping(T4_OF_THE_4BIT_BLOG))
    training = estimate(spec_from_mapping({**T4_OF_THE_4BIT_BLOG, "saves": False}))
    assert (saving.verdict, training.verdict) == ("does-not-fit", "fits")
    assert [moment.phase for moment in saving.moments[:-1]] == [moment.phase for moment in training.moments]
    assert training.allocated_bytes == max(moment.allocated for moment in saving.moments[:-1])
    assert "save" not in training.to_json()["phases"]


def test_no_copy_of_an_unstated_bitsandbytes_where_nothing_is_saved() -> None:
    assert any("copies them twice" in line for line in found().assumptions)
    assert not any("copies them twice" in line for line in found(saves=False).assumptions)


ENGINES: list[dict[str, Any]] = [
    {},
    {"gpus": 2, "zero_stage": 2},
    {"gpus": 2, "zero_stage": 3},
    {"gpus": 2, "engine": "fsdp", "versions": {"transformers": "4.28.0"}},
]


@pytest.mark.parametrize("more", ENGINES)
def test_what_a_plan_needs_at_the_least_has_no_save_either(more: dict[str, Any]) -> None:
    spec = spec_from_mapping({"model": "Qwen/Qwen2.5-7B", "optimizer": "sgd", "saves": False, **more})
    kept = states(spec)
    assert kept.save == {} and states(replace(spec, saves=True)).save
    assert floor(kept) <= estimate(spec).allocated_bytes
