"""Kimi Linear's delta attention and latent attention.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

from lintfit.catalog import models
from lintfit.memory.activations.kinds import kinds
from tests.memory.activations.steps import BF16, step

LINEAR, FULL = "linear_attention", "full_attention"
SMALL: dict[str, Any] = {
    "model_type": "kimi_linear", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 2,
    "num_attention_heads": 8, "vocab_size": 1000, "kv_lora_rank": 128, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
    "v_head_dim": 128, "num_experts": 16, "num_experts_per_token": 4, "moe_intermediate_size": 256,
    "linear_head_dim": 64, "linear_num_heads": 4, "layer_types": [LINEAR, FULL],
}  # fmt: skip
DELTA = {**SMALL, "layer_types": [LINEAR, LINEAR]}


def test_the_packages_kernel_keeps_a_fraction() -> None:
    plain = {**BF16, "gradient_checkpointing": False}
    kernels = {**plain, "fused_kernels": ["gated_delta_rule", "causal_conv1d"]}
    assert step(DELTA, 2, 1024, kernels).allocated_bytes < 0.3 * step(DELTA, 2, 1024, plain).allocated_bytes


def test_a_checkpoints_own_names_are_read() -> None:
    facts = models.lookup("moonshotai/Kimi-Linear-48B-A3B-Instruct")
    assert facts is not None
    assert [index for index, kind in enumerate(kinds(facts)) if not kind.mixer] == [3, 7, 11, 15, 19, 23, 26]
    assert [kind.routed for kind in kinds(facts)] == [False] + [True] * 26
