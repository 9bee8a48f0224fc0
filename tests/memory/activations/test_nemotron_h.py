"""Nemotron-H's layers make a gradient of each of their parameters."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.families import family
from lintfit.memory.activations.recipe import Recipe

CONFIG: dict[str, Any] = {
    "model_type": "nemotron_h", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "intermediate_size": 96, "vocab_size": 128, "mamba_num_heads": 8, "mamba_head_dim": 16, "n_groups": 2,
    "ssm_state_size": 16, "chunk_size": 32,
}  # fmt: skip


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("kind", ["linear_attention", "full_attention", "mlp"])
def test_a_layer_makes_a_gradient_of_each_parameter(kind: str, biased: bool) -> None:
    facts = models.from_config({**CONFIG, "layer_types": [kind], "mlp_bias": biased, "use_bias": biased})
    tape = Layer(facts, Recipe(2, False))
    family(facts)(tape, tape.new(facts.hidden, 2), 0)
    assert tape.weights == 2 * sum(tensor.total for tensor in facts.tensors if tensor.where == "layer")
