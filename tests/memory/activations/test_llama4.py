"""Llama 4's layers: which of them route, turn and attend in chunks, and that all experts see all tokens."""

from __future__ import annotations

from typing import Any

from lintfit.catalog import models
from lintfit.catalog.facts import ModelFacts
from lintfit.catalog.language import language
from lintfit.catalog.text_only import text_only
from lintfit.memory.activations.families import known
from lintfit.memory.activations.kinds import kinds
from lintfit.memory.activations.profile import profile
from lintfit.memory.activations.recipe import Recipe

CONFIG: dict[str, Any] = {
    "model_type": "llama4_text", "hidden_size": 256, "intermediate_size": 512, "intermediate_size_mlp": 1024,
    "num_hidden_layers": 8, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 512,
    "num_local_experts": 4, "attention_chunk_size": 1024,
}  # fmt: skip


def facts_of(**more: Any) -> ModelFacts:
    return models.from_config({**CONFIG, **more})


def saved(facts: ModelFacts, index: int) -> int:
    return profile(facts, Recipe(2, False), 1, 512, index, stream=2).saved.total


def test_every_fourth_layer_has_neither_positions_nor_chunks() -> None:
    assert [kind.window for kind in kinds(facts_of())] == [1024, 1024, 1024, None] * 2
    stated = facts_of(no_rope_layers=[0, 1] * 4)
    assert [kind.window for kind in kinds(stated)] == [None, 1024] * 4
    assert [kind.window for kind in kinds(facts_of(no_rope_layers=[]))] == [1024, 1024, 1024, None] * 2


def test_which_layers_have_experts() -> None:
    assert all(kind.routed for kind in kinds(facts_of()))
    assert [kind.routed for kind in kinds(facts_of(interleave_moe_layer_step=2))] == [False, True] * 4
    assert [kind.routed for kind in kinds(facts_of(moe_layers=[0, 5]))] == [True, *[False] * 4, True, False, False]


def test_what_experts_save_grows_with_their_number_not_with_those_that_a_token_visits() -> None:
    four, eight, two_each = facts_of(), facts_of(num_local_experts=8), facts_of(num_experts_per_tok=2)
    wide = 512 * 4 * (2 * 2 * 256 + 2 * 2 * 512 + 2 * 2 * 512)  # scaled and copied tokens, gate and up, act and product
    assert saved(eight, 0) - saved(four, 0) == wide + 4 * 512 * (4 + 2)  # and the scores, in fp32 and bf16
    assert saved(two_each, 0) - saved(four, 0) == 512 * 8  # an index


def test_the_published_model_is_its_language_model_for_the_layers() -> None:
    scout = models.lookup("meta-llama/Llama-4-Scout-17B-16E-Instruct")
    assert scout is not None
    assert known(scout)
    assert language(scout).model_type == "llama4_text"
    text = text_only(scout)
    assert text.vision is None
    assert {tensor.name for tensor in text.tensors} >= {"model.embed_tokens.weight", "lm_head.weight"}
