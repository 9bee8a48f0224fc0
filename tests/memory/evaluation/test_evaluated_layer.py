"""An evaluation whose peak is in a layer, not in the logits: bytes that torch counts under fake tensors.

Two layers of the real width with few words; counted by ``bench/fake_evaluation.py`` (torch 2.13, transformers 5.23,
PEFT 0.21), micro-batch 1, checkpointing, an evaluation batch of 6.
"""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping

HALF = {"weights_dtype": "bf16", "mixed_precision": "no"}
MIXED = {"weights_dtype": "fp32", "mixed_precision": "bf16"}
LORA = {"method": "lora", "lora_rank": 8, "lora_targets": "all-linear", "lora_dropout": 0.05, "lora_dtype": "fp32"}
LATENT = {
    "hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 2048,
    "kv_lora_rank": 256, "qk_nope_head_dim": 64, "qk_rope_head_dim": 64, "v_head_dim": 64, "first_k_dense_replace": 2,
    "n_routed_experts": 8, "moe_intermediate_size": 512, "n_shared_experts": 1, "num_experts_per_tok": 2,
    "max_position_embeddings": 4096,
}  # fmt: skip
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = {
    "the weights of two layers, and a formula's parts": (
        {"model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_positions": 2048, "rotary_dim": 64},
        {**HALF, "attention": "eager", "seq_len": 513},
        1_431_415_216,
    ),
    "the layer's attention weights during its MLP": (
        {
            "model_type": "phi3", "hidden_size": 5120, "num_attention_heads": 40, "num_key_value_heads": 10,
            "intermediate_size": 17920, "max_position_embeddings": 131072, "sliding_window": 131072, "pad_token_id": 0,
        },
        {"weights_dtype": "fp32", "mixed_precision": "no", "attention": "eager", "seq_len": 513},
        4_161_546_796,
    ),
    "the argument of a squared ReLU": (
        {
            "model_type": "nemotron", "hidden_size": 3072, "num_attention_heads": 24, "num_key_value_heads": 8,
            "intermediate_size": 9216, "max_position_embeddings": 4096, "head_dim": 128,
        },
        {"weights_dtype": "bf16", "mixed_precision": "bf16", "attention": "sdpa", "seq_len": 1000},
        819_049_436,
    ),
    "no mask of a dropout, no embeddings as a leaf": (
        {"model_type": "gpt2", "n_embd": 1088, "n_head": 17, "n_positions": 2048, "n_inner": 4352},
        {**MIXED, **LORA, "attention": "sdpa", "seq_len": 1000},
        563_866_332,
    ),
    "what attention has names for, and the MLP of the layer around": (
        {
            "model_type": "stablelm", "hidden_size": 2560, "num_attention_heads": 32, "num_key_value_heads": 32,
            "intermediate_size": 6912, "max_position_embeddings": 4096, "partial_rotary_factor": 0.25,
        },
        {**HALF, "attention": "eager", "seq_len": 513},
        969_957_376,
    ),
    "a rotary in fp32 on copies of queries and keys": (
        {
            "model_type": "cohere", "hidden_size": 4096, "num_attention_heads": 64, "num_key_value_heads": 64,
            "intermediate_size": 5632, "max_position_embeddings": 8192,
        },
        {**HALF, "attention": "sdpa", "seq_len": 513},
        1_015_701_504,
    ),
    "fp32 tables make the rotary's products fp32": (
        {
            "model_type": "olmo2", "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 16,
            "intermediate_size": 4096, "max_position_embeddings": 4096,
        },
        {**HALF, "attention": "sdpa", "seq_len": 513},
        340_455_424,
    ),
    "all parts of latent attention until its output is projected": (
        {
            "model_type": "deepseek_v3", "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 32,
            "intermediate_size": 4096, "kv_lora_rank": 512, "q_lora_rank": 768, "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64, "v_head_dim": 128, "first_k_dense_replace": 2, "n_routed_experts": 8,
            "moe_intermediate_size": 512, "n_shared_experts": 1, "num_experts_per_tok": 2,
            "max_position_embeddings": 4096,
        },
        {**HALF, "attention": "sdpa", "seq_len": 512},
        447_994_880,
    ),
    "the fused projection, and fp32 scores beside the layer before's weights": (
        {"model_type": "mpt", "d_model": 2048, "n_heads": 16, "max_seq_len": 2048},
        {**HALF, "attention": "eager", "seq_len": 513},
        590_092_288,
    ),
    "a mask in fp32 makes half-precision scores fp32, and copies of weights that come later are not there": (
        {
            "model_type": "llama", "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 8,
            "intermediate_size": 8192, "max_position_embeddings": 4096,
        },
        {**MIXED, "attention": "eager", "seq_len": 1024},
        2_569_242_624,
    ),
    "copies of all weights at the last MLP but the head's": (
        {
            "model_type": "llama", "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 8,
            "intermediate_size": 8192, "max_position_embeddings": 4096,
        },
        {**MIXED, "attention": "sdpa", "seq_len": 1024},
        1_216_579_584,
    ),
    "a projection of gate and up together, beside the copy of the next one's weight": (
        {
            "model_type": "glm4", "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 2,
            "head_dim": 128, "intermediate_size": 8192, "max_position_embeddings": 4096, "pad_token_id": 0,
        },
        {**MIXED, "attention": "sdpa", "seq_len": 1000},
        1_290_554_368,
    ),
    "the causal mask of SDPA's reference path": (
        {
            "model_type": "qwen3", "hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 8,
            "head_dim": 128, "intermediate_size": 3072, "max_position_embeddings": 4096,
        },
        {"weights_dtype": "fp32", "mixed_precision": "no", "attention": "sdpa", "seq_len": 1024},
        1_271_808_000,
    ),
    "copies of a frozen fp32 weight last for one product": (
        {
            "model_type": "gemma2", "hidden_size": 2304, "num_attention_heads": 8, "num_key_value_heads": 4,
            "head_dim": 256, "intermediate_size": 9216, "max_position_embeddings": 8192,
        },
        {**MIXED, **LORA, "attention": "eager", "seq_len": 1024},
        1_607_826_944,
    ),
    "copies of experts that run as plain products, and scores as the softmax leaves them": (
        {
            "model_type": "llama4_text", "hidden_size": 1024, "num_attention_heads": 8, "num_key_value_heads": 2,
            "head_dim": 128, "intermediate_size": 1024, "intermediate_size_mlp": 2048, "num_local_experts": 4,
            "max_position_embeddings": 4096, "no_rope_layer_interval": 2, "pad_token_id": 0,
        },
        {**MIXED, "attention": "eager", "seq_len": 1024},
        889_747_456,
    ),
    "fp32 tables make the whole queries fp32, and their scores": (
        {"model_type": "deepseek_v3", **LATENT, "q_lora_rank": 256},
        {**MIXED, "attention": "eager", "seq_len": 1024},
        1_170_622_464,
    ),
    "complex tables leave queries as they were": (
        {"model_type": "deepseek_v2", **LATENT, "q_lora_rank": None},
        {**MIXED, "attention": "eager", "seq_len": 1024},
        1_348_878_336,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_worst_layer_of_an_evaluation(name: str) -> None:
    config, more, counted = CASES[name]
    layers = {"gpt2": "n_layer", "gptj": "n_layer", "mpt": "n_layers"}.get(config["model_type"], "num_hidden_layers")
    spec = {
        "model_config": {
            **config,
            layers: 2,
            "vocab_size": 1000,
            "tie_word_embeddings": config["model_type"] == "gpt2",
        },
        "gpu_memory_gib": 1000,
        "method": "full",
        "optimizer": "sgd",
        "micro_batch_size": 1,
        "gradient_checkpointing": True,
        "use_reentrant": False,
        "evaluation": {"batch_size": 6},
        "versions": {"transformers": "5.23.0"},
        **more,
    }
    evaluated = [moment for moment in estimate(spec_from_mapping(spec)).moments if moment.phase == "evaluate"]
    assert max(moment.allocated for moment in evaluated) == pytest.approx(counted, rel=5e-4)
