"""What a spec leaves open: whose code trains, kernels, casts, and libraries of its model's time."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate
from lintfit.memory.spec import GIB

QWEN: dict[str, Any] = {
    "model": "Qwen/Qwen-7B",
    "gpu": "A100-SXM4-80GB",
    "method": "lora",
    "lora_rank": 64,
    "lora_targets": ["c_attn", "c_proj", "w1", "w2"],
    "lora_modules_to_save": ["wte", "lm_head"],
    "weights_dtype": "bf16",
    "mixed_precision": "bf16",
    "optimizer": "adamw_torch",
    "gradient_checkpointing": True,
    "attention": "flash_attention_2",
    "micro_batch_size": 1,
    "seq_len": 1024,
}


def run(**more: Any) -> Estimate:
    return estimate(spec_from_mapping({**QWEN, **more}))


def test_a_step_of_torch_2_0_lies_in_the_range_of_qwen_1() -> None:
    """35.2 GB in Qwen's own table (README, PyTorch 2.0): the roots of 1.4 billion moments, twice."""
    then = run(versions={"transformers": "4.37.2", "torch": "2.0.1"})
    assert then.peak.likely <= run().peak.high
    assert run().peak.high > 35.2e9 > 32 * GIB


def test_who_states_the_versions_has_left_nothing_open() -> None:
    stated = run(versions={"transformers": "5.23.0"})
    assert stated.peak.high < run().peak.high
    assert not any("older than" in line for line in stated.assumptions)


@pytest.mark.parametrize("cast", ["norms", "all"])
def test_an_unstated_cast_for_4_bits_lies_in_the_range(cast: str) -> None:
    stated = {"model": "mistralai/Mistral-7B-v0.1", "quantization": "nf4", "method": "lora", "weights_dtype": "bf16"}
    stated |= {"gpu": "A100-80GB", "micro_batch_size": 4, "seq_len": 4096, "gradient_checkpointing": True}
    unsaid, said = (estimate(spec_from_mapping({**stated, **more})) for more in ({}, {"kbit_upcast": cast}))
    assert unsaid.peak.high >= said.peak.high
    assert unsaid.peak.low <= said.peak.low


@pytest.mark.parametrize("said", [{"loss": "full", "fused_kernels": ["cross_entropy"]}, {"loss": "liger"}])
def test_an_unstated_kernel_for_the_loss_lies_in_the_range(said: dict[str, Any]) -> None:
    stated = {"model": "meta-llama/Meta-Llama-3-8B", "method": "lora", "weights_dtype": "bf16", "gpu": "A100-80GB"}
    stated |= {"micro_batch_size": 8, "seq_len": 4096, "gradient_checkpointing": True, "mixed_precision": "bf16"}
    unsaid = estimate(spec_from_mapping(stated))
    # Liger's norms and MLP take a little less than the model's own, too.
    assert unsaid.peak.low <= 1.03 * estimate(spec_from_mapping(stated | said)).peak.low
    known = estimate(spec_from_mapping(stated | {"fused_kernels": []}))
    assert unsaid.peak.low < known.peak.low


def test_a_deepspeed_json_that_nobody_shows_may_overlap() -> None:
    stated = {"model": "Qwen/Qwen2.5-7B", "method": "full", "gpus": 4, "zero_stage": 2, "weights_dtype": "bf16"}
    overlaps = {"zero_optimization": {"stage": 2, "overlap_comm": True}}
    unsaid, said = (estimate(spec_from_mapping({**stated, **more})) for more in ({}, {"deepspeed_config": overlaps}))
    assert unsaid.peak.high >= said.peak.high
