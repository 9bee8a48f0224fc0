"""Jamba, Mamba and Falcon Mamba: Mamba 1's mixer.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bench.fake_settings import EVERY
from lintfit.catalog import models
from lintfit.memory.activations.families import known
from lintfit.memory.activations.kinds import kinds
from lintfit.memory.activations.profile import profile
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.tensors.parameters import inventory
from tests.memory.activations.steps import BF16, HALF_AMP, step

JAMBA: dict[str, Any] = {
    "model_type": "jamba", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 1000, "num_experts": 4, "attn_layer_period": 3,
    "attn_layer_offset": 1, "pad_token_id": 0,
}  # fmt: skip
DENSE = {**JAMBA, "num_hidden_layers": 2, "num_experts": 1, "attn_layer_period": 100, "attn_layer_offset": 99}
MAMBA: dict[str, Any] = {"model_type": "mamba", "hidden_size": 512, "num_hidden_layers": 2, "vocab_size": 1000}
FALCON = {**MAMBA, "model_type": "falcon_mamba"}
PACKAGES = {"fused_kernels": ["mamba_ssm", "causal_conv1d"]}


def test_layers_of_each_kind_are_told_apart() -> None:
    facts = models.from_config(JAMBA)
    assert [bool(kind.mixer) for kind in kinds(facts)] == [True, False, True, True]
    assert [kind.routed for kind in kinds(facts)] == [False, True, False, True]
    assert known(facts)
    assert all(known(models.from_config(config)) for config in (MAMBA, FALCON))


def test_a_stated_width_counts_in_the_place_of_expand() -> None:
    stated = models.from_config({**FALCON, "expand": 16, "intermediate_size": 1024})
    assert stated.intermediate == models.from_config(FALCON).intermediate
    assert stated.tensors == models.from_config(FALCON).tensors


def test_every_channel_of_a_token_keeps_its_state() -> None:
    """In bf16 what the states fade by, what is written, the states, and half-precision copies of these."""
    recipe = Recipe(weights=2, autocast=False)
    saved = [
        profile(models.from_config({**DENSE, "mamba_d_state": state}), recipe, 1, 1024, 0, stream=2).saved.total
        for state in (16, 32)
    ]
    elements = 16 * 1024 * 1024
    assert saved[1] - saved[0] == pytest.approx((3 * 4 + 2) * elements, rel=0.01)


def test_mamba_ssm_keeps_less_and_bounds_the_low_end() -> None:
    facts = models.from_config(DENSE)
    plain = Recipe(weights=2, autocast=False)
    packaged = replace(plain, kernels=frozenset(PACKAGES["fused_kernels"]))
    torch, kernels = (profile(facts, recipe, 1, 1024, 0, stream=2).saved.total for recipe in (plain, packaged))
    assert kernels < torch / 8
    unsaid = step(DENSE, 2, 4096, {**BF16, "gpu": "A100-80GB"})
    said = step(DENSE, 2, 4096, {**BF16, "gpu": "A100-80GB", **PACKAGES})
    assert unsaid.peak.low <= said.peak.likely < unsaid.peak.likely


def test_adapters_of_the_steps_projection_never_run() -> None:
    more = {"micro_batch_size": 1, "seq_len": 128, "model_config": DENSE, **HALF_AMP, **EVERY}
    adapters = [weight for weight in inventory(spec_from_mapping(more)).weights if weight.role == "adapter"]
    idle = {weight.name for weight in adapters if not weight.trainable}
    assert idle == {f"model.layers.{{}}.mamba.dt_proj.lora_{part}" for part in "AB"}
