"""Gemma 4's layers: two kinds of heads, shared keys and values, inputs of their own."""

from __future__ import annotations

from typing import Any

from lintfit.catalog import models
from lintfit.catalog.facts import ModelFacts
from lintfit.catalog.language import language
from lintfit.memory.activations.families import known
from lintfit.memory.activations.kinds import heads_of, kinds, lends
from lintfit.memory.micro_batch.around import Around
from lintfit.memory.micro_batch.features import around_layers
from lintfit.memory.micro_batch.model import model_of, shape_of
from lintfit.memory.spec import Spec

CONFIG: dict[str, Any] = {
    "model_type": "gemma4_text", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 8,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "global_head_dim": 128, "vocab_size": 512,
    "sliding_window": 256, "hidden_size_per_layer_input": 0,
}  # fmt: skip


def facts_of(**more: Any) -> ModelFacts:
    return models.from_config({**CONFIG, **more})


def around_of(facts: ModelFacts, **more: Any) -> Around:
    """What a bf16 run has around its layers in one sequence of 1024 tokens."""
    spec = Spec(facts, seq_len=1024, **more)
    model = model_of(spec)
    return around_layers(model, shape_of(spec, model))


def test_layers_that_attend_to_everything_have_wider_heads() -> None:
    facts = facts_of(attention_k_eq_v=True, num_global_key_value_heads=1)
    assert [kind.window for kind in kinds(facts)] == [256] * 5 + [None, 256, None]
    assert [heads_of(facts, index).dim for index in (4, 5)] == [64, 128]
    assert [heads_of(facts, index).keys for index in (4, 5)] == [2, 1]
    assert heads_of(facts_of(num_global_key_value_heads=1), 5).keys == 2  # without attention_k_eq_v it is not read


def test_the_last_layer_of_each_kind_lends_its_keys_and_values() -> None:
    sliding, full = "sliding_attention", "full_attention"
    types = [sliding, full, sliding, sliding, full, sliding, sliding, full]
    facts = facts_of(num_kv_shared_layers=3, layer_types=types)
    assert [kind.shares for kind in kinds(facts)] == [False] * 5 + [True] * 3
    assert {index: shape.dim for index, shape in lends(facts).items()} == {3: 64, 4: 128}
    assert lends(facts_of()) == {}


def test_gradients_of_own_inputs_wait_for_one_another() -> None:
    facts = facts_of(hidden_size_per_layer_input=32)
    plain = around_of(facts)
    whole = 1024 * 8 * 32 * 2
    assert plain.waiting == (whole,) * 7 + (0,)
    # The tensor itself; the embeddings, the product and the normalised one in fp32, two numbers for each row.
    assert plain.kept == whole
    assert plain.graphed == 1024 * 256 * 2 + 2 * 2 * whole + 2 * 1024 * 8 * 4 + 512
    none = around_of(facts_of())
    assert (none.kept, none.graphed, any(none.waiting)) == (0, 0, False)


def test_checkpointing_makes_what_is_shared_again_and_holds_its_graph_for_the_layers_below() -> None:
    facts = facts_of(num_kv_shared_layers=3, layer_types=["sliding_attention", "full_attention"] * 4)
    found = around_of(facts, gradient_checkpointing=True)
    states, keys = 1024 * 256 * 2, (64 + 128) * 2 * 1024 * 2
    assert (found.kept, found.graphed) == (
        0,
        2 * keys,
    )  # what both lenders lend, in the dictionary that every layer has
    waiting = found.waiting
    assert waiting[0] == waiting[2] > waiting[5] > waiting[7] == 0
    again = around_of(facts, gradient_checkpointing=True, use_reentrant=True).waiting
    assert again[0] == 2 * 2 * states  # both lenders' inputs and these' gradients


def test_the_published_models_are_read() -> None:
    for name in ("google/gemma-4-E2B-it", "google/gemma-4-31B", "unsloth/gemma-4-26B-A4B-it"):
        facts = models.lookup(name)
        assert facts is not None
        assert known(facts)
        assert language(facts).model_type == "gemma4_text"
