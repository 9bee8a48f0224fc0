"""MiniMax M3's layers: dense and with experts, attending to all or to chosen blocks, against torch's own count.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import GC
from lintfit.catalog import models
from tests.memory.activations.steps import BF16, MIB, step

SPARSE = "minimax_m3_sparse"
SMALL: dict[str, Any] = {
    "model_type": "minimax_m3_vl_text", "hidden_size": 1024, "intermediate_size": 256,
    "dense_intermediate_size": 2048, "shared_intermediate_size": 256, "num_hidden_layers": 3,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 1000,
    "num_local_experts": 16, "num_experts_per_tok": 4, "index_n_heads": 4, "index_head_dim": 64,
    "partial_rotary_factor": 0.5, "layer_types": ["full_attention", SPARSE, SPARSE],
    "mlp_layer_types": ["dense", "sparse", "sparse"],
}  # fmt: skip


def test_layers_that_attend_to_everything() -> None:
    dense = {**SMALL, "layer_types": ["full_attention"] * 3}
    counted = {"bf16": 1143.57, "checkpointed": 614.14}
    plain = {**BF16, "gradient_checkpointing": False}
    assert step(dense, 4, 1024, plain).allocated_bytes / MIB == pytest.approx(counted["bf16"], rel=2e-4)
    assert step(dense, 4, 1024, {**BF16, **GC}).allocated_bytes / MIB == pytest.approx(
        counted["checkpointed"], rel=2e-4
    )


def test_a_checkpoints_own_names_are_read() -> None:
    stated = {key: value for key, value in SMALL.items() if key not in ("layer_types", "mlp_layer_types")}
    sparse = {"sparse_num_index_heads": 2, "sparse_index_dim": 32, "sparse_attention_freq": [0, 1, 1]}
    read = models.from_config({**stated, "moe_layer_freq": [0, 1, 1], "sparse_attention_config": sparse})
    plain = models.from_config({**SMALL, "index_n_heads": 2, "index_head_dim": 32})
    assert read.parameters == plain.parameters
