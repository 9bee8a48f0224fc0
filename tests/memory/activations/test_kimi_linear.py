"""Kimi Linear's delta attention and latent attention, against torch's own count of small models.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, LORA, REENTRANT
from lintfit.catalog import models
from lintfit.memory.activations.kinds import kinds
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

LINEAR, FULL = "linear_attention", "full_attention"
SMALL: dict[str, Any] = {
    "model_type": "kimi_linear", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 2,
    "num_attention_heads": 8, "vocab_size": 1000, "kv_lora_rank": 128, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
    "v_head_dim": 128, "num_experts": 16, "num_experts_per_token": 4, "moe_intermediate_size": 256,
    "linear_head_dim": 64, "linear_num_heads": 4, "layer_types": [LINEAR, FULL],
}  # fmt: skip
LATENT = {**SMALL, "layer_types": [FULL, FULL]}
DELTA = {**SMALL, "layer_types": [LINEAR, LINEAR]}
ALL = {**EVERY, "lora_dtype": "fp32"}
QUERIES = {**LORA, "lora_targets": ["q_proj", "v_proj"], "lora_dtype": "fp32"}
EAGER = {"attention": "eager"}
PADDED = {"padded_batches": True}


@pytest.mark.parametrize(
    ("config", "batch", "seq", "more", "counted"),
    [
        (LATENT, 4, 1024, BF16, 415.00),
        (LATENT, 4, 1024, AMP, 530.13),
        (LATENT, 4, 1024, {**BF16, **EAGER}, 782.75),
        (LATENT, 4, 1024, {**BF16, **REENTRANT}, 310.84),
        (LATENT, 4, 1024, {**HALF_AMP, **ALL}, 354.65),
        (LATENT, 4, 1024, {**BF16, **PADDED}, 431.00),
        (SMALL, 2, 1024, BF16, 797.10),
        (SMALL, 2, 1024, AMP, 846.22),
        (SMALL, 2, 1024, FP32, 853.76),
        (SMALL, 2, 1024, {**BF16, **GC}, 799.11),
        (SMALL, 2, 1024, {**HALF_AMP, **ALL}, 767.17),
        (DELTA, 2, 1024, BF16, 1305.41),
        (DELTA, 2, 1024, AMP, 1361.36),
        (DELTA, 2, 1024, {**BF16, **GC}, 795.13),
        (DELTA, 2, 1024, {**BF16, **REENTRANT}, 799.13),
        (DELTA, 2, 1024, {**HALF_AMP, **QUERIES}, 994.48),
        (DELTA, 2, 1024, {**BF16, **PADDED}, 1305.43),
        (SMALL, 2, 999, BF16, 796.40),
        (SMALL, 1, 300, BF16, 159.77),
        (SMALL, 1, 2048, AMP, 846.72),
    ],
)
def test_torchs_own_count(config: dict[str, Any], batch: int, seq: int, more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(config, batch, seq, more).allocated_bytes / MIB == pytest.approx(counted, rel=3e-4)


@pytest.mark.parametrize(("more", "counted"), [(BF16, 834.26), (AMP, 871.43)])
def test_an_evaluation(more: dict[str, Any], counted: float) -> None:
    found = step(DELTA, 1, 1024, {**GC, **more, "evaluation": {"batch_size": 4}})
    largest = max(moment.allocated for moment in found.moments if moment.phase == "evaluate")
    assert largest / MIB == pytest.approx(counted, rel=2e-4)


def test_the_packages_kernel_keeps_a_fraction() -> None:
    plain = {**BF16, "gradient_checkpointing": False}
    kernels = {**plain, "fused_kernels": ["gated_delta_rule", "causal_conv1d"]}
    assert step(DELTA, 2, 1024, kernels).allocated_bytes < 0.3 * step(DELTA, 2, 1024, plain).allocated_bytes


def test_a_checkpoints_own_names_are_read() -> None:
    facts = models.lookup("moonshotai/Kimi-Linear-48B-A3B-Instruct")
    assert facts is not None and facts.parameters == 49_122_675_072
    assert [index for index, kind in enumerate(kinds(facts)) if not kind.mixer] == [3, 7, 11, 15, 19, 23, 26]
    assert [kind.routed for kind in kinds(facts)] == [False] + [True] * 26
