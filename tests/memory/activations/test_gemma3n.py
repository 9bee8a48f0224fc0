"""Gemma 3n's layers: four streams, sparse MLPs in the first layers, and what every fifth layer lends to later ones."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.families import known
from lintfit.memory.activations.kinds import kinds, lends, stream_width
from lintfit.memory.activations.profile import profile
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.micro_batch.stream import stream_bytes

CONFIG: dict[str, Any] = {
    "model_type": "gemma3n_text", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 15,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 512, "sliding_window": 256,
    "num_kv_shared_layers": 5,
}  # fmt: skip


def facts_of(**more: Any) -> ModelFacts:
    return models.from_config({**CONFIG, **more})


def test_layers_by_their_window_their_mlp_and_whose_keys_they_take() -> None:
    each = kinds(facts_of())
    assert [kind.window for kind in each] == [256, 256, 256, 256, None] * 3
    assert [kind.mlp for kind in each] == [(512, True)] * 10 + [(512, False)] * 5
    assert [kind.shares for kind in each] == [False] * 10 + [True] * 5
    assert sorted(lends(facts_of())) == [8, 9]
    stated = facts_of(activation_sparsity_pattern=[0.0] * 14 + [0.5], intermediate_size=[256] * 14 + [384])
    assert [kind.mlp for kind in kinds(stated)] == [(256, False)] * 14 + [(384, True)]


def test_what_goes_from_layer_to_layer_is_as_wide_as_all_streams() -> None:
    facts = facts_of(altup_num_inputs=3)
    assert stream_width(facts) == 3 * 256
    assert profile(facts, Recipe(2, False), 1, 512, 0, stream=2).output == 512 * 3 * 256 * 2


def test_autocast_makes_the_streams_fp32() -> None:
    assert stream_bytes(facts_of(), Recipe(2, True)) == 4
    assert stream_bytes(facts_of(), Recipe(2, False)) == 2


def test_a_sparse_mlp_keeps_the_gate_twice() -> None:
    plain, sparse = (profile(facts_of(), Recipe(2, False), 1, 512, index, stream=2) for index in (11, 0))
    keys = 512 * 2 * 2 * 64 * (4 + 4 + 2)  # shared ones are another layer's: norms in fp32, a weight's, the results
    assert sparse.saved.total - plain.saved.total > 512 * 512 * 2
    assert sparse.saved.total - plain.saved.total < 512 * 512 * 2 + 2 * keys


def test_a_published_config_is_the_whole_whose_text_layers_are_known() -> None:
    whole = models.from_config({"model_type": "gemma3n", "text_config": CONFIG, "vision_config": {}})
    assert whole.exact
    assert known(whole)


def test_widths_for_other_layers_than_there_are_get_one_line() -> None:
    with pytest.raises(models.CatalogError, match=r"intermediate_size is .*one for each of the 15 layers"):
        facts_of(intermediate_size=[512, 512])
