"""Mamba 2's mixer, alone and in Granite 4, Falcon H1 and Nemotron-H.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.catalog.config import CatalogError
from lintfit.memory.activations.families import known
from lintfit.memory.activations.kinds import kinds
from lintfit.memory.activations.profile import profile
from lintfit.memory.activations.recipe import Recipe
from tests.memory.activations.steps import BF16, step

SMALL: dict[str, Any] = {
    "model_type": "granitemoehybrid", "hidden_size": 1024, "intermediate_size": 512, "num_hidden_layers": 2,
    "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 512, "tie_word_embeddings": True,
    "mamba_n_heads": 32, "mamba_d_state": 128, "num_local_experts": 0, "num_experts_per_tok": 0,
    "shared_intermediate_size": 2048, "mamba_chunk_size": 256, "position_embedding_type": "nope",
    "layer_types": ["mamba", "attention"],
}  # fmt: skip
ALONE: dict[str, Any] = {
    "model_type": "nemotron_h", "hidden_size": 1024, "intermediate_size": 4096, "hybrid_override_pattern": "M-*-",
    "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 512, "mamba_num_heads": 32,
    "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8, "chunk_size": 128, "tie_word_embeddings": False,
}  # fmt: skip
SPARSE = {
    **ALONE, "hybrid_override_pattern": "ME*E", "n_routed_experts": 8, "num_experts_per_tok": 2,
    "moe_intermediate_size": 512, "moe_shared_expert_intermediate_size": 1024,
}  # fmt: skip


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
