"""Dropout, and clamped queries, keys and values, where a config asks for them, against torch's own count.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a step of two small layers with SGD in bf16.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.memory.activations.steps import BF16, MIB, step

WIDTHS: dict[str, Any] = {
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "vocab_size": 1000,
    "pad_token_id": 0,
}
HEADS = {**WIDTHS, "head_dim": 64}
NEO: dict[str, Any] = {
    "hidden_size": 512,
    "num_layers": 2,
    "num_heads": 8,
    "vocab_size": 1000,
    "max_position_embeddings": 2048,
    "attention_types": [[["global", "local"], 1]],
}
SLIDING = {**HEADS, "sliding_window": 512}
EXPERTS = {**SLIDING, "num_local_experts": 4, "num_experts_per_tok": 2}


def _counted(kind: str, config: dict[str, Any], attention: str) -> float:
    more = {**BF16, "gradient_checkpointing": False, "attention": attention}
    return step({"model_type": kind, **config}, 2, 1024, more).allocated_bytes / MIB


@pytest.mark.parametrize(
    ("kind", "config", "counted"),
    [
        ("gemma", HEADS, 381.76),
        ("gemma3_text", {**SLIDING, "layer_types": ["full_attention", "sliding_attention"]}, 430.29),
        ("phi3", WIDTHS, 376.73),
        ("cohere", WIDTHS, 381.74),
        ("olmo2", WIDTHS, 407.01),
        ("phi", WIDTHS, 363.63),
        ("stablelm", WIDTHS, 364.57),
        ("nemotron", WIDTHS, 353.64),
        ("helium", HEADS, 382.98),
        ("exaone4", SLIDING, 394.97),
        ("gpt_oss", EXPERTS, 408.85),
    ],
)
def test_attention_weights(kind: str, config: dict[str, Any], counted: float) -> None:
    assert _counted(kind, {**config, "attention_dropout": 0.1}, "eager") == pytest.approx(counted, rel=5e-4)


@pytest.mark.parametrize(
    ("kind", "config", "attention", "counted"),
    [
        ("starcoder2", {**WIDTHS, "embedding_dropout": 0.1}, "sdpa", 85.91),
        ("gpt_neox", {**WIDTHS, "hidden_dropout": 0.1}, "sdpa", 98.7),
        ("gpt_neo", {**NEO, "embed_dropout": 0.1}, "eager", 393.56),
        ("phi", {**WIDTHS, "embd_pdrop": 0.1}, "sdpa", 106.73),
        ("phi3", {**WIDTHS, "embd_pdrop": 0.1}, "sdpa", 135.83),
        ("stablelm", {**WIDTHS, "hidden_dropout": 0.1}, "sdpa", 109.69),
        ("stablelm", {**WIDTHS, "hidden_dropout": 0.1, "use_parallel_residual": True}, "sdpa", 101.65),
    ],
)
def test_embeddings_and_blocks(kind: str, config: dict[str, Any], attention: str, counted: float) -> None:
    """Phi 3 has the key and no such layer; StableLM drops what its MLP gives."""
    assert _counted(kind, config, attention) == pytest.approx(counted, rel=5e-4)


def test_gemma_3_caps_its_logits_where_the_config_has_a_cap() -> None:
    config = {**SLIDING, "final_logit_softcapping": 30.0, "vocab_size": 8000}
    assert _counted("gemma3_text", config, "sdpa") == pytest.approx(407.31, rel=1e-3)


@pytest.mark.parametrize(
    ("kind", "attention", "counted"), [("olmo", "sdpa", 117.11), ("olmo", "eager", 361.99), ("olmoe", "sdpa", 211.2)]
)
def test_what_is_clamped_in_place_is_saved_as_it_was(kind: str, attention: str, counted: float) -> None:
    config = {**WIDTHS, "num_key_value_heads": 4, "clip_qkv": 8.0, "num_experts": 4, "num_experts_per_tok": 2}
    if kind == "olmo":
        config = {key: value for key, value in config.items() if "experts" not in key}
    assert _counted(kind, config, attention) == pytest.approx(counted, rel=5e-4)
