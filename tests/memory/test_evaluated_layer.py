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
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_worst_layer_of_an_evaluation(name: str) -> None:
    config, more, counted = CASES[name]
    layers = "n_layer" if "n_embd" in config else "num_hidden_layers"
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
