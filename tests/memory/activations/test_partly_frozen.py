"""Steps and evaluations of small models of which parts are frozen, against torch's own count under fake tensors.

``bench.fake_tensors`` and ``bench.fake_evaluation`` on torch 2.13 and transformers 5.23: MiB of a whole step of 8 x
1024 tokens with SGD, and of an evaluation on batches of the same size.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import GC, REENTRANT
from tests.memory.activations.steps import AMP, BF16, MIB, step

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "num_hidden_layers": 6,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "vocab_size": 4000,
}
QWEN: dict[str, Any] = {**LLAMA, "model_type": "qwen2", "tie_word_embeddings": True}
GPT2: dict[str, Any] = {"model_type": "gpt2", "n_embd": 1024, "n_layer": 6, "n_head": 16, "vocab_size": 4000}
GEMMA: dict[str, Any] = {
    "model_type": "gemma3_text",
    "hidden_size": 1024,
    "intermediate_size": 2048,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "vocab_size": 4000,
    "sliding_window": 512,
    "pad_token_id": 0,
}
MIXTRAL: dict[str, Any] = {
    "model_type": "mixtral",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 4000,
    "num_local_experts": 4,
}
EAGER = {**BF16, "attention": "eager"}


@pytest.mark.parametrize(
    ("config", "frozen", "more", "counted"),
    [
        (LLAMA, "embed_tokens", BF16, 2619.35),
        (LLAMA, "embed_tokens", AMP, 3397.06),
        (LLAMA, "embed_tokens", {**BF16, **GC}, 730.37),
        (LLAMA, "embed_tokens layers[:4]", BF16, 1241.09),
        (LLAMA, "embed_tokens layers[:4]", AMP, 1612.80),
        (LLAMA, "embed_tokens layers[:4]", EAGER, 2939.34),
        (LLAMA, "embed_tokens layers[:4]", {**AMP, **GC}, 1048.07),
        (LLAMA, "embed_tokens layers[:4]", {**BF16, **REENTRANT}, 724.35),
        (LLAMA, "layers[:4]", BF16, 2219.38),
        (LLAMA, "layers[:4]", {**BF16, **GC}, 708.35),
        (LLAMA, "* !lm_head", BF16, 535.71),
        (LLAMA, "* !lm_head", EAGER, 1544.97),
        (LLAMA, "* !layers[5] !norm", {**BF16, **GC}, 695.04),
        (LLAMA, "* !layers[5] !norm", AMP, 1150.74),
        (LLAMA, "layers.2 layers.4", BF16, 2435.38),
        (LLAMA, "lm_head", {**AMP, **GC}, 1076.48),
        (LLAMA, "lm_head norm layers[-2:]", AMP, 3005.09),
        (GPT2, "wte wpe h[:4]", BF16, 1474.35),
        (GPT2, "* !h[4:] !ln_f", {**AMP, **GC}, 1588.70),
        (GEMMA, "embed_tokens layers[:3]", BF16, 2208.05),
        (GEMMA, "* !layers[-2:]", {**BF16, **REENTRANT}, 945.62),
        (MIXTRAL, "embed_tokens layers[:2]", AMP, 1401.84),
        (MIXTRAL, "layers.2", {**AMP, **GC}, 741.31),
        (QWEN, "embed_tokens", BF16, 2595.55),
        (QWEN, "layers[:5]", {**AMP, **GC}, 1021.48),
        (QWEN, "* !norm", EAGER, 1537.18),
    ],
)
def test_a_step(config: dict[str, Any], frozen: str, more: dict[str, Any], counted: float) -> None:
    found = step(config, 8, 1024, {"gradient_checkpointing": False, **more, "frozen_modules": frozen.split()})
    assert found.allocated_bytes / MIB == pytest.approx(counted, rel=0.0005)


@pytest.mark.parametrize(
    ("config", "frozen", "more", "counted"),
    [
        (LLAMA, "embed_tokens layers[:4]", AMP, 684.80),
        (LLAMA, "* !lm_head", AMP, 641.80),
        (LLAMA, "* !lm_head", BF16, 473.34),
        (GPT2, "wte wpe h[:4]", AMP, 880.04),
        (GEMMA, "* !layers[-2:]", AMP, 598.42),
        (QWEN, "layers[:5]", AMP, 647.72),
    ],
)
def test_an_evaluation(config: dict[str, Any], frozen: str, more: dict[str, Any], counted: float) -> None:
    run = {"gradient_checkpointing": False, **more, "frozen_modules": frozen.split(), "evaluation": {"batch_size": 8}}
    found = step(config, 8, 1024, run).moments
    evaluated = max(moment.allocated for moment in found if moment.phase == "evaluate")
    assert evaluated / MIB == pytest.approx(counted, rel=0.0005)
