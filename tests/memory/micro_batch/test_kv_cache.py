"""Keys and values that a model returns while it trains.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from tests.memory.activations.steps import AMP, BF16, step

SMALL: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4,
    "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 2000,
}  # fmt: skip
GROUPED = {**SMALL, "num_key_value_heads": 4}
LEARNED = {"model_type": "gpt2", "n_embd": 1024, "n_layer": 4, "n_head": 16, "vocab_size": 2000}
CACHE = {"use_cache": True, "gradient_checkpointing": False}
STATES = 4 * 2 * 2 * 1024 * 1024
"""Elements of the keys and values of all heads, in all layers."""


def test_autocast_leaves_the_cache_rotated_keys_and_values_in_fp32() -> None:
    kept, dropped = (step(SMALL, 2, 1024, {**CACHE, **AMP, "use_cache": on}) for on in (True, False))
    assert kept.allocated_bytes - dropped.allocated_bytes == 4 * STATES


def test_copies_stand_beside_a_fused_projection() -> None:
    kept, dropped = (step(LEARNED, 2, 1024, {**CACHE, **BF16, "use_cache": on}) for on in (True, False))
    assert kept.allocated_bytes - dropped.allocated_bytes == 2 * STATES


def test_older_caches_hold_what_the_layer_saves() -> None:
    older = {**CACHE, **BF16, "versions": {"transformers": "4.55.0"}}
    kept, dropped = (step(LEARNED, 2, 1024, {**older, "use_cache": on}) for on in (True, False))
    assert kept.allocated_bytes == dropped.allocated_bytes


@pytest.mark.parametrize("more", [{"gradient_checkpointing": True}, {"trainer": "dpo"}, {"front_end": "litgpt"}])
def test_nothing_is_returned(more: dict[str, Any]) -> None:
    kept, dropped = (step(GROUPED, 2, 1024, {**CACHE, **AMP, **more, "use_cache": on}) for on in (True, False))
    assert kept.allocated_bytes == dropped.allocated_bytes


@pytest.mark.parametrize(
    ("config", "versions", "caches"),
    [
        (GROUPED, {"transformers": "4.57.0"}, True),
        (GROUPED, {"transformers": "4.57.0", "trl": "0.21.0"}, True),
        (GROUPED, {"transformers": "4.57.0", "trl": "0.22.1"}, False),
        (GROUPED, {"transformers": "5.0.0"}, False),
        ({**GROUPED, "use_cache": False}, {"transformers": "4.57.0"}, False),
    ],
)
def test_transformers_4_goes_by_the_models_config(
    config: dict[str, Any], versions: dict[str, str], caches: bool
) -> None:
    silent, said = (
        step(config, 2, 1024, {**AMP, "versions": versions, **more})
        for more in ({}, {"use_cache": caches, "gradient_checkpointing": False})
    )
    assert silent.allocated_bytes == said.allocated_bytes


def test_an_image_encoder_has_no_cache() -> None:
    seeing = {"model": "Qwen/Qwen2-VL-2B-Instruct", "images": 1, "image_patches": 4096, **CACHE, **BF16}
    kept, dropped = (
        estimate(spec_from_mapping({**seeing, "micro_batch_size": 1, "seq_len": 2048, "use_cache": on}))
        for on in (True, False)
    )
    assert kept.allocated_bytes == dropped.allocated_bytes
