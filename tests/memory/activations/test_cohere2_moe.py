"""Command A+'s layers: experts beside attention, against torch's own count of small models under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23, four layers, the first dense: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, LORA, REENTRANT
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "cohere2_moe", "hidden_size": 1024, "intermediate_size": 256, "num_hidden_layers": 4,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 1000, "num_experts": 16,
    "num_experts_per_tok": 4, "num_shared_experts": 1, "sliding_window": 128, "pad_token_id": 0,
    "prefix_dense_intermediate_size": 2048, "layer_types": ["full_attention", "sliding_attention"] * 2,
    "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"],
}  # fmt: skip
ALL = {**EVERY, "lora_dtype": "fp32"}
QUERIES = {**LORA, "lora_targets": ["q_proj", "v_proj"], "lora_dtype": "fp32"}


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 941.16),
        (AMP, 1634.59),
        (FP32, 2247.00),
        ({**BF16, "attention": "eager"}, 2693.59),
        ({**BF16, **GC}, 497.23),
        ({**BF16, **REENTRANT}, 505.23),
        ({**HALF_AMP, **ALL}, 1014.98),
        ({**HALF_AMP, **QUERIES}, 777.25),
        ({**BF16, "padded_batches": True}, 981.16),
    ],
)
def test_torchs_own_count(more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(SMALL, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=4e-4)
