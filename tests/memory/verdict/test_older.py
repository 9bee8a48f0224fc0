"""Where a spec states no versions, the range counts those of the last two years."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate

RUN = {"gpu": "A100-80GB", "mixed_precision": "bf16", "weights_dtype": "bf16", "micro_batch_size": 1, "seq_len": 1024}


def of(model: str, **more: Any) -> Estimate:
    return estimate(spec_from_mapping({"model": model, **RUN, **more}))


@pytest.mark.parametrize("version", ["0.15.4", "0.16.9", "0.17.0", "0.18.2"])
def test_deepspeed_with_a_cpu_optimizer(version: str) -> None:
    run: dict[str, Any] = {"gpus": 2, "zero_stage": 2, "offload_optimizer": "cpu", "gradient_checkpointing": True}
    unstated, stated = (of("Qwen/Qwen2.5-7B", **run, versions=v) for v in ({}, {"deepspeed": version}))
    assert unstated.peak.low <= stated.peak.likely <= unstated.peak.high


@pytest.mark.parametrize("quantization", [None, "nf4"])
def test_fsdp_1_holds_inputs_under_reentrant_checkpointing(quantization: str | None) -> None:
    run: dict[str, Any] = {"gpus": 4, "engine": "fsdp", "fsdp": {"version": 1}, "method": "lora"}
    run |= {"quantization": quantization, "gradient_checkpointing": True, "seq_len": 8192, "micro_batch_size": 4}
    model = "meta-llama/Llama-2-70b-hf"
    unstated, stated = (of(model, **run, versions=v) for v in ({}, {"transformers": "4.48.0"}))
    assert unstated.peak.likely < stated.peak.likely <= unstated.peak.high
    assert any("reentrant as in transformers 4" in line for line in unstated.assumptions)


def test_the_optimizer_of_transformers_4_copies_parameters() -> None:
    unstated, stated = (of("Qwen/Qwen2.5-7B", versions=v) for v in ({}, {"transformers": "4.57.0"}))
    assert unstated.peak.likely < stated.peak.likely <= 1.001 * unstated.peak.high
    told = of("Qwen/Qwen2.5-7B", optimizer="adamw_torch_fused")
    assert told.peak.high < unstated.peak.high


@pytest.mark.parametrize("version", ["4.48.0", "4.57.0", "5.0.0"])
def test_attention_that_the_newest_writes_out_bounds_no_low_end(version: str) -> None:
    run: dict[str, Any] = {"seq_len": 4096, "gradient_checkpointing": False, "method": "lora"}
    unstated, stated = (of("google/gemma-2-2b", **run, versions=v) for v in ({}, {"transformers": version}))
    assert unstated.peak.low <= stated.peak.likely
