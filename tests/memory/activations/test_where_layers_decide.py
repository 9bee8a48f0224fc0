"""Layers of families that a small vocabulary shows: routers' dtypes and names, kernels' room, tables, masks.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY
from lintfit.memory.activations.attention_scratch import efficient_scratch, flash_scratch
from lintfit.memory.activations.tape import Tape
from tests.memory.activations.steps import HALF_AMP, MIB, step

PLAIN = {"gradient_checkpointing": False}
QUERIES = {**EVERY, "lora_targets": ["q_proj", "v_proj"], "lora_dropout": 0.05}
HYBRID: dict[str, Any] = {
    "model_type": "granitemoehybrid",
    "hidden_size": 256,
    "shared_intermediate_size": 512,
    "intermediate_size": 512,
    "num_local_experts": 0,
    "num_experts_per_tok": 0,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "mamba_n_heads": 16,
    "mamba_d_state": 64,
    "layer_types": ["mamba", "attention"],
    "vocab_size": 1000,
}


def test_a_layer_that_leaves_no_graph_may_take_most() -> None:
    """The layer of Mamba 2 stands in front of the first adapters."""
    found = step(HYBRID, 8, 1024, {**PLAIN, **HALF_AMP, **QUERIES, "evaluation": {"batch_size": 0}})
    assert found.peak_moment.name == "layer 0, forward"
    assert found.allocated_bytes / MIB == pytest.approx(557.57, rel=2e-3)


def scratch(parts: Any, batch: int, seq: int) -> int:
    return sum(size * per(batch, seq) for size, per in parts)


def test_flash_attention_fills_up_rows_and_heads() -> None:
    """Two heads of 80 become 96 wide, 100 queries 128."""
    assert scratch(flash_scratch(2, 80), 3, 100) == 3 * 2 * 128 * (96 + 1) * 4


@pytest.mark.parametrize(
    ("item", "wide", "value", "workspace"),
    [
        (2, 64, 64, 16 * 1 * (64 * 64 * 4 + 16)),
        (2, 128, 128, 8 * 1 * (128 * 128 * 4 + 16)),
        (2, 192, 128, 8 * 3 * (128 * 64 * 4 + 16) + 16 * 64 * (256 + 128) * 4),
        (4, 128, 128, 1024 * 129 * 4),
    ],
)
def test_the_memory_efficient_kernels_workspace(item: int, wide: int, value: int, workspace: int) -> None:
    """One head, 1024 queries: tiles; staged keys and values of wide heads in 16 parts; in fp32 the whole product."""
    tape = Tape()
    q, out = tape.new(wide, item), tape.new(value, item)
    assert scratch(efficient_scratch(q, out, 1, wide), 1, 1024) == 1024 * 4 + workspace
