"""MiMo V2 Flash's layers, with and without a window, against torch's own count of small models under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23, three layers, the first dense: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, LORA, REENTRANT
from lintfit.catalog import models
from lintfit.catalog.config import CatalogError
from lintfit.memory.activations.families import known
from lintfit.memory.activations.kinds import heads_of
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "mimo_v2_flash", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 3,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 96, "v_head_dim": 64, "vocab_size": 1000,
    "n_routed_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 256, "sliding_window": 128,
    "layer_types": ["full_attention", "sliding_attention", "full_attention"],
}  # fmt: skip
WINDOWS = {**SMALL, "layer_types": ["sliding_attention"] * 3, "num_key_value_heads": 8}
EAGER = {"attention": "eager"}
ALL = {**EVERY, "lora_dtype": "fp32"}
QUERIES = {**LORA, "lora_targets": ["q_proj", "v_proj"], "lora_dtype": "fp32"}

RECORDED: tuple[tuple[dict[str, Any], int, int, dict[str, Any], float], ...] = (
    (SMALL, 4, 1024, BF16, 1289.72),
    (SMALL, 4, 1024, AMP, 2433.29),
    (SMALL, 4, 1024, FP32, 2307.45),
    (SMALL, 4, 1024, {**BF16, **GC}, 686.13),
    (SMALL, 4, 1024, {**BF16, **REENTRANT}, 726.00),
    (SMALL, 4, 1024, {**HALF_AMP, **ALL}, 1132.57),
    (SMALL, 4, 1024, {**HALF_AMP, **QUERIES}, 1053.62),
    (SMALL, 4, 1024, {**BF16, "padded_batches": True}, 1289.72),
    (SMALL, 3, 999, {**AMP, **ALL, **GC}, 842.49),
    (WINDOWS, 4, 1024, BF16, 1299.85),
    (WINDOWS, 4, 1024, AMP, 2464.04),
    (WINDOWS, 4, 1024, {**BF16, **GC}, 691.75),
    (WINDOWS, 4, 1024, {**HALF_AMP, **QUERIES}, 1063.14),
)


@pytest.mark.parametrize(("config", "batch", "seq", "more", "counted"), RECORDED)
def test_torchs_own_count(config: dict[str, Any], batch: int, seq: int, more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **EAGER, **more}
    assert step(config, batch, seq, more).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)


def test_layers_with_a_window_have_twice_the_key_heads() -> None:
    facts = models.from_config(SMALL)
    assert [(heads_of(facts, index).keys, heads_of(facts, index).window) for index in range(3)] == [
        (4, None), (8, 128), (4, None),
    ]  # fmt: skip
    assert known(facts)


def test_the_first_layer_and_every_sixth_attend_to_everything() -> None:
    facts = models.from_config({**SMALL, "num_hidden_layers": 12, "layer_types": None, "sliding_window_size": 64})
    assert [index for index in range(12) if heads_of(facts, index).window is None] == [0, 5, 11]
    assert facts.sliding_window == 65
    assert facts.moe is not None and facts.moe.layers == 11


def test_key_heads_of_a_window_divide_the_heads() -> None:
    with pytest.raises(CatalogError, match="twice that must divide"):
        models.from_config({**SMALL, "num_key_value_heads": 16})
