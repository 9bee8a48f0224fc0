"""Zamba2's layers, some of which share a block, against torch's own count of small models under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, LORA, REENTRANT
from lintfit.catalog import models
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.tensors.parameters import inventory
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

PLAIN: dict[str, Any] = {
    "model_type": "zamba2",
    "vocab_size": 1000,
    "hidden_size": 512,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "n_mamba_heads": 16,
    "mamba_d_state": 32,
    "adapter_rank": 64,
    "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid", "hybrid", "mamba"],
}
SHARED: dict[str, Any] = {
    **PLAIN,
    "num_mem_blocks": 2,
    "use_shared_attention_adapter": True,
    "use_mem_rope": True,
    "mamba_ngroups": 2,
}
WIDE: dict[str, Any] = {
    **PLAIN,
    "hidden_size": 2048,
    "num_hidden_layers": 7,
    "num_attention_heads": 16,
    "mamba_d_state": 16,
    "chunk_size": 32,
    "num_mem_blocks": 2,
    "layers_block_type": ["mamba", *["hybrid"] * 5, "mamba"],
}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (PLAIN, BF16, 3227.01),
        (PLAIN, AMP, 2784.74),
        (PLAIN, {**AMP, **GC}, 821.55),
        (SHARED, BF16, 3253.74),
        (SHARED, AMP, 2915.22),
        (SHARED, FP32, 3860.50),
        (SHARED, {**BF16, "attention": "eager"}, 3829.37),
        (SHARED, {**BF16, **GC}, 774.34),
        (SHARED, {**BF16, **REENTRANT}, 782.34),
        (SHARED, {**AMP, **GC}, 898.13),
        (SHARED, {**AMP, **REENTRANT}, 926.50),
        (SHARED, {**HALF_AMP, **EVERY, "lora_dtype": "fp32"}, 2605.00),
        (SHARED, {**HALF_AMP, **LORA, "lora_targets": ["q_proj", "v_proj"], "lora_dtype": "fp32"}, 2028.79),
        (SHARED, {**HALF_AMP, **EVERY, **REENTRANT, "lora_dtype": "fp32"}, 734.42),
        (SHARED, {**AMP, **EVERY, "lora_dtype": "fp32"}, 2678.86),
        (SHARED, {**BF16, "padded_batches": True}, 3277.77),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(config, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=1e-4)


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 1854.09),
        (AMP, 3465.35),
        (FP32, 3530.93),
        ({**AMP, **GC}, 3278.63),
        ({**BF16, "gradient_accumulation_steps": 2}, 2439.25),
        ({**AMP, "gradient_accumulation_steps": 2}, 4663.17),
        ({**BF16, **REENTRANT, "gradient_accumulation_steps": 2}, 1746.85),
    ],
)
def test_gradients_of_shared_parameters(more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(WIDE, 1, 256, more).allocated_bytes / MIB == pytest.approx(counted, rel=1e-4)


@pytest.mark.parametrize(("more", "counted"), [(BF16, 430.16), (AMP, 494.78), ({**BF16, "attention": "eager"}, 438.16)])
def test_evaluation(more: dict[str, Any], counted: float) -> None:
    found = step(SHARED, 4, 1024, {"gradient_checkpointing": False, "evaluation": {"batch_size": 4}, **more})
    worst = max(moment.allocated for moment in found.moments if moment.phase == "evaluate")
    assert worst / MIB == pytest.approx(counted, rel=1e-4)


def test_every_layer_has_adapters_of_its_own_on_a_shared_block() -> None:
    spec = {"model_config": SHARED, "micro_batch_size": 1, "seq_len": 256, "method": "lora", "lora_targets": ["o_proj"]}
    found = [weight for weight in inventory(spec_from_mapping(spec)).weights if weight.role == "adapter"]
    assert sum(weight.copies for weight in found) == 2 * 3


@pytest.mark.parametrize(("name", "parameters"), [("1.2B", 1.22e9), ("2.7B", 2.7e9), ("7B-Instruct", 7.4e9)])
def test_published_models(name: str, parameters: float) -> None:
    facts = models.lookup(f"Zyphra/Zamba2-{name}")
    assert facts is not None and facts.parameters == pytest.approx(parameters, rel=0.02)
