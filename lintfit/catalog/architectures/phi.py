"""Phi 1, 1.5 and 2: attention and MLP in parallel after one norm, biases everywhere."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, attention, decoder_shape, embedding, head, norm, plain_mlp
from lintfit.catalog.architectures._decoder import KEYS
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, since
from lintfit.frozen import replace

REQUIRED = KEYS
DEFAULTS = defaults("phi")
CODE = Code(sdpa=since(4, 39), layer="PhiDecoderLayer")


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config, norm="layernorm", gated=False, qk_norm=config.flag("qk_layernorm"))
    return replace(numbers, parallel_residual=True)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    hidden, layers, layer = numbers.hidden, numbers.layers, "model.layers.{}"
    qk_norms: list[Tensor] = []
    if numbers.qk_norm:
        qk_norms += norm(f"{layer}.self_attn.q_layernorm", numbers.head_dim, layers, bias=True)
        qk_norms += norm(f"{layer}.self_attn.k_layernorm", numbers.head_dim, layers, bias=True)
    return (
        *embedding("model.embed_tokens", numbers.vocab, hidden),
        *attention(f"{layer}.self_attn", numbers, layers, bias=True, out_bias=True, out="dense"),
        *qk_norms,
        *plain_mlp(f"{layer}.mlp", hidden, numbers.intermediate, layers, up="fc1", down="fc2"),
        *norm(f"{layer}.input_layernorm", hidden, layers, bias=True),
        *norm("model.final_layernorm", hidden, bias=True, where="final"),
        *head(numbers, bias=True),
    )
