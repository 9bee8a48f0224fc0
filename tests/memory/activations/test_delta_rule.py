"""Qwen 3 Next and 3.5: layers of gated delta rule and of gated attention.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, LORA
from lintfit.catalog import models
from lintfit.memory import estimate
from lintfit.memory.activations.families import known
from lintfit.memory.activations.kinds import kinds
from lintfit.memory.activations.profile import profile
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.reading.parse import spec_from_mapping
from tests.memory.activations.steps import BF16, step

TYPES = ["linear_attention", "full_attention"]
SMALL: dict[str, Any] = {
    "model_type": "qwen3_5_text", "hidden_size": 1024, "intermediate_size": 3584, "num_hidden_layers": 2,
    "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 512,
    "linear_num_key_heads": 16, "linear_num_value_heads": 16, "layer_types": TYPES, "tie_word_embeddings": True,
}  # fmt: skip
GROUPED = {**SMALL, "linear_num_value_heads": 32}
ROUTED: dict[str, Any] = {
    "hidden_size": 2048, "num_hidden_layers": 2, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
    "vocab_size": 512, "linear_num_value_heads": 32, "linear_num_key_heads": 16, "layer_types": TYPES,
    "tie_word_embeddings": False, "num_experts": 16, "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
}  # fmt: skip
NEXT = {**ROUTED, "model_type": "qwen3_next", "intermediate_size": 5120, "num_experts_per_tok": 10}
MOE = {**ROUTED, "model_type": "qwen3_5_moe_text", "num_experts_per_tok": 8}


def test_every_fourth_layer_has_attention() -> None:
    facts = models.from_config({**{k: v for k, v in SMALL.items() if k != "layer_types"}, "num_hidden_layers": 8})
    assert [kind.mixer for kind in kinds(facts)] == [*["linear_attention"] * 3, ""] * 2
    assert known(facts)
    assert known(models.from_config(NEXT))
    assert known(models.from_config(MOE))


def test_a_layer_keeps_a_state_for_every_chunk() -> None:
    facts = models.from_config(GROUPED)
    recipe = Recipe(weights=2, autocast=False)
    state = 32 * 128 * 128 * 4
    saved = [profile(facts, recipe, 1, seq, 0, stream=2).saved.total for seq in (641, 640, 576)]
    assert saved[1] - saved[2] > state
    # One token more fills a chunk up: more is kept by chunks than by tokens.
    per_chunk = saved[1] - saved[2]
    assert per_chunk / 2 < saved[0] - saved[1] < per_chunk


def test_packages_kernels_keep_less() -> None:
    facts = models.from_config(GROUPED)
    plain = Recipe(weights=2, autocast=False)
    fla = replace(plain, kernels=frozenset({"gated_delta_rule", "causal_conv1d"}))
    torch, kernels = (profile(facts, recipe, 1, 1024, 0, stream=2).saved.total for recipe in (plain, fla))
    assert kernels < torch / 2


def test_the_inverse_row_by_row_keeps_more() -> None:
    """Before transformers 5.17 every row of a chunk's inverse keeps itself and all above: 63 · 64 · 65 / 3 elements."""
    facts = models.from_config(SMALL)
    recipe = Recipe(weights=2, autocast=False)
    now, before = (
        profile(facts, replace(recipe, transformers=version), 1, 1024, 0, stream=2).saved.total
        for version in ((5, 17), (5, 16))
    )
    assert before - now == pytest.approx(16 * 16 * 4 * 63 * 64 * 65 / 3, rel=0.02)


def test_what_runs_where_packages_are_installed_bounds_the_low_end() -> None:
    base = {**BF16, **GC, "gpu": "A100-80GB"}
    plain = step(SMALL, 2, 4096, base)
    stated = step(SMALL, 2, 4096, {**base, "fused_kernels": ["gated_delta_rule", "causal_conv1d"]})
    assert plain.peak.low <= stated.peak.likely < plain.peak.likely
    assert any("flash-linear-attention and causal-conv1d (not stated" in line for line in plain.assumptions)
    assert not any("flash-linear-attention" in line for line in stated.assumptions)
    older = estimate(
        spec_from_mapping({"model_config": SMALL, "optimizer": "sgd", "micro_batch_size": 2, "seq_len": 4096, **base})
    )
    assert older.peak.likely == plain.peak.likely
    assert older.peak.high > plain.peak.high


def test_layers_before_the_first_adapter_keep_nothing() -> None:
    """Adapters on attention alone: three layers of four have no gradient behind frozen embeddings."""
    types = ["linear_attention"] * 3 + ["full_attention"]
    config = {**SMALL, "num_hidden_layers": 4, "layer_types": types}
    attention = step(config, 2, 512, {**BF16, **LORA})
    everywhere = step(config, 2, 512, {**BF16, **EVERY})
    assert attention.allocated_bytes < everywhere.allocated_bytes / 2
