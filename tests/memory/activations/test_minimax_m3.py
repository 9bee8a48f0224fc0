"""MiniMax M3's layers: dense and with experts, attending to all or to chosen blocks, against torch's own count.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, LORA, REENTRANT
from lintfit.catalog import models
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SPARSE = "minimax_m3_sparse"
SMALL: dict[str, Any] = {
    "model_type": "minimax_m3_vl_text", "hidden_size": 1024, "intermediate_size": 256,
    "dense_intermediate_size": 2048, "shared_intermediate_size": 256, "num_hidden_layers": 3,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 1000,
    "num_local_experts": 16, "num_experts_per_tok": 4, "index_n_heads": 4, "index_head_dim": 64,
    "partial_rotary_factor": 0.5, "layer_types": ["full_attention", SPARSE, SPARSE],
    "mlp_layer_types": ["dense", "sparse", "sparse"],
}  # fmt: skip
ALL = {**EVERY, "lora_dtype": "fp32"}
QUERIES = {**LORA, "lora_targets": ["q_proj", "v_proj"], "lora_dtype": "fp32"}
EAGER = {"attention": "eager"}


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 1408.82),
        (AMP, 1875.54),
        (FP32, 2510.00),
        ({**BF16, **EAGER}, 2312.81),
        ({**BF16, **GC}, 750.52),
        ({**BF16, **REENTRANT}, 787.27),
        ({**HALF_AMP, **ALL}, 1224.38),
        ({**HALF_AMP, **QUERIES}, 1140.54),
        ({**BF16, "padded_batches": True}, 1420.82),
    ],
)
def test_torchs_own_count(more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(SMALL, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)


@pytest.mark.parametrize(
    ("more", "batch", "seq", "counted"),
    [(BF16, 2, 999, 728.01), (BF16, 1, 2048, 994.03), (AMP, 2, 999, 1004.63), ({**BF16, **GC}, 2, 999, 422.46)],
)
def test_blocks_that_the_last_one_does_not_fill(more: dict[str, Any], batch: int, seq: int, counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(SMALL, batch, seq, more).allocated_bytes / MIB == pytest.approx(counted, rel=3e-4)


@pytest.mark.parametrize(("more", "counted"), [(BF16, 573.69), (AMP, 975.11), ({**BF16, **EAGER}, 912.40)])
def test_an_evaluation(more: dict[str, Any], counted: float) -> None:
    found = step(SMALL, 1, 1024, {**GC, **more, "evaluation": {"batch_size": 4}})
    largest = max(moment.allocated for moment in found.moments if moment.phase == "evaluate")
    assert largest / MIB == pytest.approx(counted, rel=2e-4)


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
