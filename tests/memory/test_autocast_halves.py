"""Weights of one 16-bit type under autocast to the other: they are cast as fp32 ones are."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping

BASE = {"model": "NousResearch/Llama-2-7b-hf", "micro_batch_size": 1, "seq_len": 512}


def _allocated(dtype: str, mixed: str, **more: Any) -> int:
    spec = {**BASE, "weights_dtype": dtype, "mixed_precision": mixed, **more}
    return estimate(spec_from_mapping(spec)).allocated_bytes


@pytest.mark.parametrize(("dtype", "mixed"), [("bf16", "fp16"), ("fp16", "bf16")])
def test_the_graph_keeps_a_copy_of_every_frozen_weight(dtype: str, mixed: str) -> None:
    """``nn.Linear`` of bf16 under fp16 autocast saves the fp16 copy of its weight for its input's gradient."""
    same, other = _allocated(dtype, dtype, method="lora"), _allocated(dtype, mixed, method="lora")
    linear = 32 * (4 * 4096 * 4096 + 3 * 4096 * 11008) * 2
    assert other - same > 0.95 * linear


def test_checkpointed_layers_keep_a_layer_of_them() -> None:
    """Backward computes a layer again, with copies of its weights alone."""
    how = {"method": "lora", "gradient_checkpointing": True}
    assert _allocated("bf16", "fp16", **how) - _allocated("bf16", "bf16", **how) < 2 * 2**30


def test_engines_without_autocast_cast_nothing() -> None:
    zero = {"method": "lora", "zero_stage": 2, "gpus": 2}
    assert _allocated("bf16", "fp16", **zero) == _allocated("fp16", "fp16", **zero)
