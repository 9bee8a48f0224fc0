"""MiniMax-01's lightning attention against torch's own count of small models under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23, two layers or four: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, LORA, REENTRANT
from lintfit.catalog import models
from lintfit.catalog.config import CatalogError
from lintfit.memory.activations.families import known
from lintfit.memory.activations.kinds import kinds
from lintfit.memory.micro_batch.buffers import buffers
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "minimax", "hidden_size": 1024, "intermediate_size": 512, "num_hidden_layers": 2,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 1000, "num_local_experts": 8,
    "num_experts_per_tok": 2, "layer_types": ["linear_attention", "full_attention"],
}  # fmt: skip
LINEAR = {**SMALL, "layer_types": ["linear_attention"] * 2}
WINDOWS = {**SMALL, "num_hidden_layers": 4, "sliding_window": 128, "block_size": 128, "layer_types": None}
ALL = {**EVERY, "lora_dtype": "fp32"}
QUERIES = {**LORA, "lora_targets": ["q_proj", "v_proj"], "lora_dtype": "fp32"}

RECORDED: tuple[tuple[dict[str, Any], int, int, dict[str, Any], float], ...] = (
    (SMALL, 4, 1024, BF16, 616.38),
    (SMALL, 4, 1024, AMP, 886.64),
    (SMALL, 4, 1024, FP32, 1578.93),
    (SMALL, 4, 1024, {**BF16, "attention": "eager"}, 1205.74),
    (SMALL, 4, 1024, {**BF16, **GC}, 488.73),
    (SMALL, 4, 1024, {**BF16, **REENTRANT}, 520.67),
    (SMALL, 4, 1024, {**HALF_AMP, **ALL}, 649.05),
    (SMALL, 4, 1024, {**HALF_AMP, **QUERIES}, 282.40),
    (SMALL, 4, 1024, {**BF16, "padded_batches": True}, 636.41),
    (SMALL, 3, 999, {**AMP, **ALL, **GC}, 531.71),
    (WINDOWS, 4, 1024, BF16, 1121.66),
    (WINDOWS, 4, 1024, AMP, 1661.00),
    (WINDOWS, 4, 1024, {**BF16, **GC}, 582.80),
    (WINDOWS, 4, 1024, {**BF16, "padded_batches": True}, 1121.69),
    (LINEAR, 4, 1024, BF16, 750.91),
    (LINEAR, 4, 1024, AMP, 1032.94),
    (LINEAR, 4, 1024, FP32, 1276.91),
    (LINEAR, 4, 1024, {**BF16, **GC}, 500.75),
    (LINEAR, 4, 1024, {**HALF_AMP, **ALL}, 759.60),
)


@pytest.mark.parametrize(("config", "batch", "seq", "more", "counted"), RECORDED)
def test_torchs_own_count(config: dict[str, Any], batch: int, seq: int, more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(config, batch, seq, more).allocated_bytes / MIB == pytest.approx(counted, rel=5e-4)


def test_every_second_layer_is_linear_where_nothing_is_said() -> None:
    facts = models.from_config(WINDOWS)
    assert [kind.mixer for kind in kinds(facts)] == ["", "linear_attention"] * 2
    assert [kind.window for kind in kinds(facts)] == [128, None] * 2
    assert known(facts)


def test_decays_are_buffers_of_every_linear_layer() -> None:
    facts = models.from_config(SMALL)
    assert buffers(facts, 2) == 512 + 2 * 16 * 256 * 2 + 16 * 256**2 * 2
    assert buffers(models.from_config(LINEAR), 4) == 2 * (512 + 2 * 16 * 256 * 4 + 16 * 256**2 * 4)


def test_every_layer_has_a_type() -> None:
    with pytest.raises(CatalogError, match="must name each of the 3 layers"):
        models.from_config({**SMALL, "num_hidden_layers": 3})
