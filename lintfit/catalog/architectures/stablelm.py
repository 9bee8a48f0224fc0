"""StableLM 3B 4E1T and StableLM 2."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, decoder_shape, gated_mlp, norm
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, since
from lintfit.frozen import replace

REQUIRED = KEYS
DEFAULTS = defaults("stablelm")
CODE = Code(sdpa=since(4, 39))


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config, norm="layernorm", qk_norm=config.flag("qk_layernorm"))
    return replace(numbers, parallel_residual=config.flag("use_parallel_residual"))


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, layer = shape(config), "model.layers.{}"
    names = ("input_layernorm",) if numbers.parallel_residual else ("input_layernorm", "post_attention_layernorm")
    style = DecoderStyle(qkv_bias=config.flag("use_qkv_bias"), norm_bias=True, layer_norms=names)
    qk_norms: list[Tensor] = []
    if numbers.qk_norm:
        for part, heads in (("q", numbers.heads), ("k", numbers.kv_heads)):
            name = f"{layer}.self_attn.{part}_layernorm.norms.{{}}"
            qk_norms += norm(name, numbers.head_dim, numbers.layers * heads)
    layers = [
        *self_attention(numbers, style),
        *qk_norms,
        *gated_mlp(f"{layer}.mlp", numbers.hidden, numbers.intermediate, numbers.layers),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
