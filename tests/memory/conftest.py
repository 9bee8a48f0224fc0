"""Model facts built by hand, so that these tests do not lean on the catalogue."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lintfit.catalog.facts import ModelFacts, Tensor


def llama(
    hidden: int = 256,
    layers: int = 4,
    intermediate: int = 704,
    vocab: int = 2048,
    heads: int = 8,
    kv_heads: int = 4,
    tied: bool = False,
    name: str = "small-llama",
) -> ModelFacts:
    """A Llama with these numbers (elements), its tensors in the order of the modules."""
    head_dim = hidden // heads
    kv = kv_heads * head_dim
    layer = "model.layers.{}"
    tensors = [
        Tensor("model.embed_tokens.weight", (vocab, hidden), 1, "embedding", "embedding"),
        Tensor(f"{layer}.self_attn.q_proj.weight", (hidden, hidden), layers),
        Tensor(f"{layer}.self_attn.k_proj.weight", (kv, hidden), layers),
        Tensor(f"{layer}.self_attn.v_proj.weight", (kv, hidden), layers),
        Tensor(f"{layer}.self_attn.o_proj.weight", (hidden, hidden), layers),
        Tensor(f"{layer}.mlp.gate_proj.weight", (intermediate, hidden), layers),
        Tensor(f"{layer}.mlp.up_proj.weight", (intermediate, hidden), layers),
        Tensor(f"{layer}.mlp.down_proj.weight", (hidden, intermediate), layers),
        Tensor(f"{layer}.input_layernorm.weight", (hidden,), layers, "norm"),
        Tensor(f"{layer}.post_attention_layernorm.weight", (hidden,), layers, "norm"),
        Tensor("model.norm.weight", (hidden,), 1, "norm", "final"),
    ]
    if not tied:
        tensors.append(Tensor("lm_head.weight", (vocab, hidden), 1, "lm_head", "head"))
    return ModelFacts(
        name=name,
        model_type="llama",
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=intermediate,
        vocab=vocab,
        tied=tied,
        gated=True,
        norm="rmsnorm",
        activation="silu",
        tensors=tuple(tensors),
    )


@pytest.fixture
def make_llama() -> Callable[..., ModelFacts]:
    return llama


@pytest.fixture
def small() -> ModelFacts:
    return llama()


@pytest.fixture
def baichuan_7b() -> ModelFacts:
    """Baichuan-7B's numbers: 7,000,559,616 parameters."""
    return llama(4096, 32, 11008, 64000, 32, 32, name="baichuan-inc/Baichuan-7B")
