"""Ministral's layers, with and without a window, against torch's own count of small models under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23, two layers: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, LORA, REENTRANT
from lintfit.catalog import models
from lintfit.memory.activations.families import known
from lintfit.memory.activations.kinds import kinds
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "ministral", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 2,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 1000, "sliding_window": 128,
}  # fmt: skip
MIXED = {**SMALL, "layer_types": ["full_attention", "sliding_attention"]}
FULL = {**SMALL, "layer_types": ["full_attention"] * 2}
ALL = {**EVERY, "lora_dtype": "fp32"}
QUERIES = {**LORA, "lora_targets": ["q_proj", "v_proj"], "lora_dtype": "fp32"}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 472.72),
        (SMALL, AMP, 626.84),
        (SMALL, {**BF16, "attention": "eager"}, 1430.20),
        (SMALL, {**BF16, **GC}, 278.45),
        (SMALL, {**BF16, **REENTRANT}, 286.45),
        (MIXED, BF16, 452.72),
        (MIXED, FP32, 1024.59),
        (MIXED, {**BF16, **GC}, 269.44),
        (MIXED, {**HALF_AMP, **ALL}, 480.41),
        (MIXED, {**HALF_AMP, **QUERIES}, 379.79),
        (MIXED, {**BF16, "padded_batches": True}, 472.72),
        (FULL, BF16, 432.72),
        (FULL, {**BF16, "attention": "eager"}, 1430.20),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(config, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=1e-4)


@pytest.mark.parametrize(
    ("config", "attention", "counted"),
    [(SMALL, "sdpa", 119.21), (SMALL, "eager", 746.21), (FULL, "sdpa", 119.21), (FULL, "eager", 746.21)],
)
def test_a_mask_of_either_kind_is_there_while_it_is_evaluated(
    config: dict[str, Any], attention: str, counted: float
) -> None:
    found = step(config, 1, 1024, {**BF16, **GC, "attention": attention, "evaluation": {"batch_size": 4}})
    largest = max(moment.allocated for moment in found.moments if moment.phase == "evaluate")
    assert largest / MIB == pytest.approx(counted, rel=2e-4)


def test_layers_are_told_apart_by_their_windows() -> None:
    facts = models.from_config(MIXED)
    assert [kind.window for kind in kinds(facts)] == [None, 128]
    assert known(facts)
