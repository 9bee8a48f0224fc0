"""Layers of families that a small vocabulary shows: routers' dtypes and names, kernels' room, tables, masks.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, REENTRANT
from lintfit.memory.activations.attention_scratch import efficient_scratch, flash_scratch
from lintfit.memory.activations.tape import Tape
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

PLAIN = {"gradient_checkpointing": False}
EAGER = {"attention": "eager"}
QUERIES = {**EVERY, "lora_targets": ["q_proj", "v_proj"], "lora_dropout": 0.05}
DEEP: dict[str, Any] = {
    "model_type": "deepseek_v3",
    "hidden_size": 1024,
    "intermediate_size": 2048,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "vocab_size": 1000,
    "q_lora_rank": 256,
    "kv_lora_rank": 128,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "n_routed_experts": 16,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 256,
    "n_group": 4,
    "topk_group": 2,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
}
DOTS: dict[str, Any] = {
    "model_type": "dots1",
    "hidden_size": 1024,
    "intermediate_size": 2048,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "vocab_size": 1000,
    "n_routed_experts": 16,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 512,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
}
GRANITE: dict[str, Any] = {
    "model_type": "granitemoe",
    "hidden_size": 512,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 1000,
    "num_local_experts": 32,
    "num_experts_per_tok": 8,
}
STABLE: dict[str, Any] = {
    "model_type": "stablelm",
    "hidden_size": 1280,
    "intermediate_size": 3456,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "vocab_size": 1000,
    "partial_rotary_factor": 0.25,
    "use_parallel_residual": False,
}
NEO: dict[str, Any] = {
    "model_type": "gpt_neo",
    "hidden_size": 512,
    "num_layers": 2,
    "num_heads": 8,
    "vocab_size": 1000,
    "max_position_embeddings": 2048,
    "window_size": 256,
    "attention_types": [[["global", "local"], 1]],
}
MPT: dict[str, Any] = {
    "model_type": "mpt",
    "d_model": 1024,
    "n_heads": 16,
    "n_layers": 2,
    "max_seq_len": 2048,
    "vocab_size": 1000,
    "no_bias": True,
}
BLOOM: dict[str, Any] = {"model_type": "bloom", "hidden_size": 1024, "n_layer": 2, "n_head": 16, "vocab_size": 1000}
SMALL: dict[str, Any] = {
    "model_type": "opt",
    "hidden_size": 1024,
    "word_embed_proj_dim": 512,
    "ffn_dim": 4096,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "vocab_size": 1000,
    "max_position_embeddings": 2048,
    "do_layer_norm_before": False,
    "dropout": 0.0,
}
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
GLM: dict[str, Any] = {
    "model_type": "glm4",
    "hidden_size": 1024,
    "intermediate_size": 2048,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "pad_token_id": 0,
    "vocab_size": 1000,
}
GEMMA: dict[str, Any] = {
    "model_type": "gemma2",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 1000,
}
GPT_OSS: dict[str, Any] = {
    "model_type": "gpt_oss",
    "hidden_size": 512,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "vocab_size": 1000,
}
PHI_MOE: dict[str, Any] = {
    "model_type": "phimoe",
    "hidden_size": 1024,
    "intermediate_size": 1024,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "vocab_size": 1000,
}
LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 1280,
    "intermediate_size": 1280,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "vocab_size": 1000,
}


@pytest.mark.parametrize(
    ("config", "batch", "seq", "more", "counted"),
    [
        (DEEP, 2, 1024, {**BF16, **GC}, 310.60),
        (DEEP, 2, 1000, AMP, 576.94),
        (DEEP, 2, 1024, {**FP32, **GC}, 489.94),
        (DOTS, 4, 1024, {**HALF_AMP, **EVERY}, 712.67),
        (GRANITE, 8, 1024, {**HALF_AMP, **EVERY}, 847.22),
        (STABLE, 4, 1024, {**HALF_AMP, **EVERY}, 754.50),
        (NEO, 4, 512, {**AMP, **EAGER}, 378.04),
        (MPT, 4, 512, {**BF16, **EAGER}, 446.98),
        (BLOOM, 4, 512, {**BF16, **EAGER}, 468.07),
        (SMALL, 4, 512, {**HALF_AMP, **EVERY, **GC}, 210.79),
        (LLAMA, 4, 1000, {**FP32, **GC}, 485.15),
        (LLAMA, 4, 1000, {**BF16, **GC}, 297.80),
        (LLAMA, 4, 1000, {**BF16, **GC, "padded_batches": True}, 309.25),
        (GLM, 4, 1024, {**AMP, **EVERY, **GC}, 392.17),
        (GEMMA, 4, 2048, {**BF16, **GC, **EAGER}, 1049.33),
        (GEMMA, 4, 2048, {**BF16, **REENTRANT, **EAGER}, 1065.33),
        (GPT_OSS, 8, 1024, {**HALF_AMP, **QUERIES, **EAGER}, 1376.24),
        (PHI_MOE, 8, 1024, {**HALF_AMP, **QUERIES}, 834.77),
    ],
)
def test_torchs_own_count(config: dict[str, Any], batch: int, seq: int, more: dict[str, Any], counted: float) -> None:
    assert step(config, batch, seq, {**PLAIN, **more}).allocated_bytes / MIB == pytest.approx(counted, rel=8e-4)


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
