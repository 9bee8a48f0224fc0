"""What models do around their layers: which features a run has, and what they take together."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.frozen import replace
from lintfit.memory.micro_batch.around import Around
from lintfit.memory.micro_batch.buffers import BUFFERS, OF_SOUND
from lintfit.memory.micro_batch.embedding import DROPOUT, LEAF, NORM, PROJECTION, SUMMANDS
from lintfit.memory.micro_batch.features import around_layers, features
from lintfit.memory.micro_batch.model import Model, model_of, shape_of
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.spec import Spec

TOKENS = 4 * 512


def spec_of(model: str, **more: Any) -> Spec:
    return spec_from_mapping({"model": model, "micro_batch_size": 4, "seq_len": 512, **more})


def model(name: str, **more: Any) -> Model:
    return model_of(spec_of(name, **more))


@pytest.mark.parametrize("more", [{}, {"method": "lora", "gradient_checkpointing": True}])
def test_a_plain_decoder_has_no_features(more: dict[str, Any]) -> None:
    assert features(model("meta-llama/Llama-2-7b-hf", **more)) == ()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt2", {DROPOUT, SUMMANDS}),
        ("bigcode/starcoder", {BUFFERS, DROPOUT, SUMMANDS}),
        ("facebook/opt-125m", {SUMMANDS}),
        ("facebook/opt-350m", {PROJECTION, SUMMANDS}),
        ("albert/albert-base-v2", {NORM, PROJECTION}),
        ("Qwen/Qwen2.5-Omni-7B", {OF_SOUND}),
    ],
)
def test_a_model_has_what_its_class_does(name: str, expected: set[object]) -> None:
    assert set(features(model(name))) == expected


def test_a_leaf_is_another_tensor_only_where_something_is_done_to_it() -> None:
    adapters = {"method": "lora", "gradient_checkpointing": True}
    assert LEAF in features(model("gpt2", **adapters))
    assert LEAF not in features(model("gpt2", method="lora"))
    assert LEAF not in features(model("Qwen/Qwen2.5-0.5B", **adapters))


def test_features_add_up() -> None:
    spec = spec_of("gpt2")
    own = model_of(spec)
    words = TOKENS * 768 * own.embedded
    found = around_layers(own, shape_of(spec, own))
    assert found == Around(graphed=TOKENS * 768, summands=words + 512 * 768 * own.embedded)


def test_waiting_gradients_add_up_layer_by_layer() -> None:
    first, none, other = Around(kept=1, waiting=(2, 3)), Around(kept=4), Around(waiting=(10, 0))
    assert first.plus(none).plus(other) == Around(kept=5, waiting=(12, 3))
    assert none.plus(first) == Around(kept=5, waiting=(2, 3))


def test_micro_batches_of_all_sizes_have_one_model() -> None:
    spec = spec_of("gpt2")
    assert model_of(replace(spec, seq_len=128, micro_batch_size=1)) is model_of(spec)
    assert model_of(replace(spec, gradient_checkpointing=True)) is not model_of(spec)
