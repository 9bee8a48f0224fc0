"""Mamba 2's mixer, alone and in Granite 4, Falcon H1 and Nemotron-H, against torch's own count of small models.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23, with one layer of each kind: MiB of a whole step with SGD.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, LORA, REENTRANT
from lintfit.catalog import models
from lintfit.catalog.config import CatalogError
from lintfit.memory.activations.families import known
from lintfit.memory.activations.kinds import kinds
from lintfit.memory.activations.profile import profile
from lintfit.memory.activations.recipe import Recipe
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "granitemoehybrid", "hidden_size": 1024, "intermediate_size": 512, "num_hidden_layers": 2,
    "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 512, "tie_word_embeddings": True,
    "mamba_n_heads": 32, "mamba_d_state": 128, "num_local_experts": 0, "num_experts_per_tok": 0,
    "shared_intermediate_size": 2048, "mamba_chunk_size": 256, "position_embedding_type": "nope",
    "layer_types": ["mamba", "attention"],
}  # fmt: skip
ROUTED = {**SMALL, "num_local_experts": 16, "num_experts_per_tok": 6}
PARALLEL: dict[str, Any] = {
    "model_type": "falcon_h1", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 2,
    "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 512, "mamba_n_heads": 24,
    "mamba_d_state": 128, "mamba_d_ssm": 1536, "mamba_chunk_size": 128, "mamba_rms_norm": False,
    "mamba_norm_before_gate": False, "tie_word_embeddings": True,
}  # fmt: skip
NORMED = {**PARALLEL, "mamba_rms_norm": True}
ALONE: dict[str, Any] = {
    "model_type": "nemotron_h", "hidden_size": 1024, "intermediate_size": 4096, "hybrid_override_pattern": "M-*-",
    "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 512, "mamba_num_heads": 32,
    "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8, "chunk_size": 128, "tie_word_embeddings": False,
}  # fmt: skip
SPARSE = {
    **ALONE, "hybrid_override_pattern": "ME*E", "n_routed_experts": 8, "num_experts_per_tok": 2,
    "moe_intermediate_size": 512, "moe_shared_expert_intermediate_size": 1024,
}  # fmt: skip
ONLY: dict[str, Any] = {
    "model_type": "mamba2", "hidden_size": 512, "num_hidden_layers": 2, "num_heads": 16, "head_dim": 64,
    "state_size": 64, "n_groups": 2, "vocab_size": 1000, "chunk_size": 256,
}  # fmt: skip
HALF = {**ONLY, "n_groups": 1, "residual_in_fp32": False, "use_bias": True, "tie_word_embeddings": True}
EAGER = {"attention": "eager"}
INTO = {**EVERY, "lora_targets": ["in_proj"], "lora_dtype": "fp32", **EAGER}
"""PEFT refuses adapters on ``out_proj`` and ``conv1d`` here."""
BEHIND = {**NORMED, "mamba_norm_before_gate": True}

RECORDED: tuple[tuple[dict[str, Any], int, int, dict[str, Any], float], ...] = (
    (SMALL, 2, 512, BF16, 420.54),
    (SMALL, 1, 700, {**BF16, **GC}, 316.48),
    (SMALL, 2, 512, FP32, 589.16),
    (SMALL, 2, 512, AMP, 432.66),
    (SMALL, 1, 300, {**AMP, **GC}, 280.37),
    (SMALL, 2, 512, {**HALF_AMP, **EVERY}, 321.73),
    (SMALL, 2, 500, {**HALF_AMP, **EVERY, **GC}, 330.20),
    (SMALL, 2, 512, {**BF16, **EVERY, **GC}, 392.04),
    ({**SMALL, "mamba_n_groups": 2}, 2, 700, {**HALF_AMP, **GC}, 490.69),
    ({**ROUTED, "mamba_n_groups": 2}, 2, 512, BF16, 626.55),
    ({**ROUTED, "mamba_n_groups": 2}, 2, 700, {**HALF_AMP, **GC}, 659.90),
    (ROUTED, 2, 512, {**HALF_AMP, **EVERY, **REENTRANT}, 431.05),
    (PARALLEL, 1, 500, {**BF16, **GC}, 193.36),
    (PARALLEL, 2, 512, FP32, 654.87),
    ({**PARALLEL, "num_hidden_layers": 1}, 2, 512, {**AMP, **GC}, 263.40),
    (PARALLEL, 2, 512, {**HALF_AMP, **LORA}, 255.79),
    (PARALLEL, 2, 512, {**BF16, **LORA, **GC}, 282.67),
    (NORMED, 2, 512, BF16, 513.53),
    (NORMED, 2, 500, {**AMP, **GC}, 369.19),
    (NORMED, 2, 500, {**HALF_AMP, **LORA, **REENTRANT}, 232.68),
    (BEHIND, 1, 700, AMP, 426.61),
    ({**BEHIND, "mamba_n_groups": 2}, 2, 500, {**BF16, **GC}, 315.32),
    (ALONE, 2, 512, BF16, 418.00),
    (ALONE, 1, 500, {**BF16, **GC}, 253.11),
    (ALONE, 2, 512, {**AMP, **GC}, 470.39),
    (SPARSE, 2, 512, BF16, 430.30),
    (SPARSE, 1, 500, {**AMP, **GC}, 365.76),
    ({**SPARSE, "moe_latent_size": 256}, 2, 512, {**BF16, **GC}, 386.29),
    (ONLY, 4, 1024, {**BF16, **EAGER}, 1066.31),
    (ONLY, 4, 1024, {**AMP, **EAGER}, 890.14),
    (ONLY, 4, 1024, {**FP32, **EAGER}, 1141.43),
    (ONLY, 4, 1024, {**BF16, **GC, **EAGER}, 587.99),
    (ONLY, 4, 1024, {**BF16, **REENTRANT, **EAGER}, 589.08),
    (ONLY, 4, 1024, {**HALF_AMP, **INTO}, 802.95),
    (ONLY, 4, 1024, {**BF16, **EAGER, "padded_batches": True}, 1070.34),
    (ONLY, 3, 999, {**AMP, **INTO, **GC}, 391.14),
    (HALF, 4, 1024, {**BF16, **EAGER}, 1056.07),
    (HALF, 4, 1024, {**AMP, **EAGER}, 881.44),
)


@pytest.mark.parametrize(("config", "batch", "seq", "more", "counted"), RECORDED)
def test_torchs_own_count(config: dict[str, Any], batch: int, seq: int, more: dict[str, Any], counted: float) -> None:
    assert step(config, batch, seq, more).allocated_bytes / MIB == pytest.approx(counted, rel=5e-4)


@pytest.mark.parametrize(("more", "counted"), [(BF16, 411.81), (AMP, 383.00)])
def test_what_has_a_name_in_the_scan_is_there_while_it_is_evaluated(more: dict[str, Any], counted: float) -> None:
    found = step(ONLY, 1, 1024, {**more, **GC, **EAGER, "evaluation": {"batch_size": 4}})
    largest = max(moment.allocated for moment in found.moments if moment.phase == "evaluate")
    assert largest / MIB == pytest.approx(counted, rel=2e-4)


def test_either_name_of_a_kind_of_layer_is_read() -> None:
    old = models.from_config(SMALL)
    new = models.from_config({**SMALL, "layer_types": ["linear_attention", "full_attention"]})
    assert [bool(kind.mixer) for kind in kinds(old)] == [bool(kind.mixer) for kind in kinds(new)] == [True, False]
    assert old.tensors == new.tensors
    assert known(old)


def test_every_head_has_three_squares_of_scores_a_chunk() -> None:
    recipe = Recipe(weights=2, autocast=False)
    saved = [
        profile(models.from_config({**SMALL, "mamba_chunk_size": chunk}), recipe, 1, 1024, 0, stream=2).saved.total
        for chunk in (128, 256)
    ]
    squares = 3 * 32 * 1024 * (256 - 128) * 4
    states = 6 * 32 * 64 * 128 * 4 * 1024 * (1 / 128 - 1 / 256)
    assert squares - states < saved[1] - saved[0] < squares


def test_mamba_ssm_keeps_less_and_bounds_the_low_end() -> None:
    facts = models.from_config(SMALL)
    plain = Recipe(weights=2, autocast=False)
    packaged = replace(plain, kernels=frozenset({"mamba_ssm", "causal_conv1d"}))
    torch, kernels = (profile(facts, recipe, 1, 1024, 0, stream=2).saved.total for recipe in (plain, packaged))
    assert kernels < torch / 4
    unsaid = step(SMALL, 2, 4096, {**BF16, "gpu": "A100-80GB"})
    said = step(SMALL, 2, 4096, {**BF16, "gpu": "A100-80GB", "fused_kernels": ["mamba_ssm", "causal_conv1d"]})
    assert unsaid.peak.low <= said.peak.likely < unsaid.peak.likely
    assert any("mamba-ssm and causal-conv1d (not stated" in line for line in unsaid.assumptions)


def test_the_pattern_says_how_many_layers_of_which_kind_there_are() -> None:
    facts = models.from_config({**ALONE, "num_hidden_layers": 99})
    assert facts.layers == 4
    assert [kind.mixer for kind in kinds(facts)] == ["linear_attention", "mlp", "", "mlp"]
    assert known(facts)


def test_layers_of_experts_are_told_from_the_others() -> None:
    facts = models.from_config(SPARSE)
    assert [kind.routed for kind in kinds(facts)] == [False, True, False, True]
    assert facts.moe is not None and facts.moe.layers == 2


def test_an_unknown_letter_of_the_pattern_is_named() -> None:
    with pytest.raises(CatalogError, match="layers of kind 'X' are not counted yet"):
        models.from_config({**ALONE, "hybrid_override_pattern": "MX*-"})
