"""Patterns of ``frozen_modules``, and what is counted of the parts that they name."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.memory.engines import fsdp
from lintfit.memory.reading.contradictions import SpecError
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.frozen_parts import FrozenParts, frozen_parts
from lintfit.memory.tensors.parameters import inventory

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "vocab_size": 1000,
}
TIED: dict[str, Any] = {**LLAMA, "tie_word_embeddings": True}
SOME_SPARSE: dict[str, Any] = {
    **LLAMA,
    "model_type": "qwen3_moe",
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "mlp_only_layers": [0],
}
LAYER = 41_088
WORDS = 64_000


def spec(*modules: str, config: dict[str, Any] = LLAMA, **more: Any) -> Spec:
    base = {"model_config": config, "frozen_modules": list(modules), "seq_len": 16, "weights_dtype": "fp32"}
    return spec_from_mapping({**base, **more})


def parts(*modules: str, config: dict[str, Any] = LLAMA) -> FrozenParts:
    return frozen_parts(spec(*modules, config=config))


@pytest.mark.parametrize(
    ("modules", "layers"),
    [
        (("model.layers[:2]",), {0, 1}),
        (("layers[-1]",), {3}),
        (("layers[1:-1]",), {1, 2}),
        (("layers[2:]",), {2, 3}),
        (("layers[0]", "model.layers.2"), {0, 2}),
        (("*layers.1*",), {1}),
        (("layers[:]", "!layers[3]"), {0, 1, 2}),
        (("!layers[3]", "layers"), {0, 1, 2, 3}),
        (("*", "!*lm_head*"), {0, 1, 2, 3}),
        (("model.embed_tokens",), set()),
    ],
)
def test_layers_by_their_numbers(modules: tuple[str, ...], layers: set[int]) -> None:
    assert parts(*modules).layers == layers


@pytest.mark.parametrize(
    ("modules", "around"),
    [
        (("embed_tokens",), (True, False, False)),
        (("*", "!lm_head"), (True, True, False)),
        (("model",), (True, True, False)),
        (("lm_head", "model.norm"), (False, True, True)),
        (("layers[:2]",), (False, False, False)),
    ],
)
def test_what_lies_around_the_layers(modules: tuple[str, ...], around: tuple[bool, bool, bool]) -> None:
    found = parts(*modules)
    assert (found.embedding, found.final, found.head) == around


def test_a_tied_head_is_frozen_with_the_embedding() -> None:
    assert parts("embed_tokens", config=TIED).head
    with pytest.raises(SpecError, match=r"'lm_head' names nothing of the model \(its head is the embedding\)"):
        spec("lm_head", config=TIED)


@pytest.mark.parametrize(
    ("modules", "config", "message"),
    [
        (("layers[4:]",), LLAMA, r"'layers\[4:\]' names nothing of the model"),
        (("layers[]",), LLAMA, r"'layers\[\]' names nothing of the model"),
        (("self_attn",), LLAMA, "a part of a decoder layer cannot be frozen, only all of it"),
        (("*norm*",), LLAMA, "a part of a decoder layer cannot be frozen, only all of it"),
        (("*",), LLAMA, "nothing is left to train"),
        (("layers[:1]",), SOME_SPARSE, "layers that differ cannot be frozen one by one, only all of them"),
    ],
)
def test_patterns_that_cannot_be_counted(modules: tuple[str, ...], config: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=rf"^frozen_modules: .*{message}"):
        spec(*modules, config=config)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"gpus": 2, "engine": "deepspeed", "pipeline_parallel": 2}, "need pipeline_parallel 1, got 2"),
        ({"trainer": "ppo"}, "trainer 'ppo', which trains two models"),
    ],
)
def test_runs_in_which_parts_of_the_text_cannot_be_frozen(more: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        spec("layers[:2]", **more)


def test_layers_that_differ_are_frozen_together() -> None:
    found = inventory(spec("layers", config=SOME_SPARSE))
    assert {weight.where for weight in found.trainables} == {"embedding", "final", "head"}


@pytest.mark.parametrize(
    ("modules", "trained"),
    [
        (("layers[:3]",), LAYER + 2 * WORDS + 64),
        (("embed_tokens", "layers[1]"), 3 * LAYER + WORDS + 64),
        (("*", "!lm_head"), WORDS),
    ],
)
def test_what_is_left_is_trained(modules: tuple[str, ...], trained: int) -> None:
    found = inventory(spec(*modules))
    assert found.trainable == trained
    assert found.trainable + found.frozen == models.from_config(LLAMA).parameters == 4 * LAYER + 2 * WORDS + 64


def test_adapters_stand_beside_all_of_the_model() -> None:
    assert frozen_parts(spec("layers[:2]", method="lora", lora_rank=8)) == FrozenParts()


def test_fsdp_1_has_a_gradient_for_all_of_a_unit_in_which_anything_trains() -> None:
    """Two ranks with gloo on torch 2.13 (``use_orig_params``): ``flat_param.grad`` has 64,032 elements in the root unit
    and 20,544 in each trained layer; the rank with most has AdamW states for all of these."""
    run = spec("embed_tokens", "layers[:2]", gpus=2, engine="fsdp", fsdp={"version": 1, "strategy": "FULL_SHARD"})
    shard = fsdp.sharded(fsdp.stored(run), 2)
    assert shard.trainable == 64_032 + 2 * 20_544
    assert fsdp.optimized(run, shard).trainable == pytest.approx(64_032 + 2 * 20_544, abs=2)
    layer, root = fsdp.units(run, fsdp.stored(run))
    assert (layer.gradient, root.gradient) == (4 * LAYER, 4 * 128_064)


def test_fsdp_2_has_none_for_what_is_frozen() -> None:
    run = spec("embed_tokens", "layers[:2]", gpus=2, engine="fsdp", fsdp={"version": 2, "strategy": "FULL_SHARD"})
    assert fsdp.sharded(fsdp.stored(run), 2).trainable == inventory(run).trainable // 2
