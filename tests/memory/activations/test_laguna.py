"""Laguna's layers, with and without a window, against torch's own count of small models under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23, four layers, the first dense: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, LORA, REENTRANT
from lintfit.catalog import models
from lintfit.memory.activations.kinds import heads_of
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "laguna", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 4,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 1000, "num_experts": 16,
    "num_experts_per_tok": 4, "moe_intermediate_size": 256, "shared_expert_intermediate_size": 256,
    "sliding_window": 128, "layer_types": ["full_attention", "sliding_attention"] * 2,
}  # fmt: skip
ALL = {**EVERY, "lora_dtype": "fp32"}
QUERIES = {**LORA, "lora_targets": ["q_proj", "v_proj"], "lora_dtype": "fp32"}


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 1145.47),
        (AMP, 1913.25),
        (FP32, 2604.53),
        ({**BF16, "attention": "eager"}, 2842.78),
        ({**BF16, **GC}, 544.98),
        ({**BF16, **REENTRANT}, 552.98),
        ({**HALF_AMP, **ALL}, 1121.69),
        ({**HALF_AMP, **QUERIES}, 944.88),
        ({**BF16, "padded_batches": True}, 1169.47),
    ],
)
def test_torchs_own_count(more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(SMALL, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=4e-4)


def test_layers_have_heads_of_their_own() -> None:
    facts = models.from_config({**SMALL, "num_attention_heads_per_layer": [16, 8, 16, 8]})
    assert [heads_of(facts, index).queries for index in range(4)] == [16, 8, 16, 8]
