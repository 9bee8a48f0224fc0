"""Solar Open: GLM 4.5's experts in every layer, and Llama's attention."""

from __future__ import annotations

from lintfit.catalog.architectures import deepseek_v3
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import DecoderStyle, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "n_routed_experts", "moe_intermediate_size")
UNKNOWN = frozenset({"first_k_dense_replace", "intermediate_size", "partial_rotary_factor", "use_qk_norm"})
DEFAULTS = defaults("solar_open")


def shape(config: Config) -> Shape:
    """The numbers; no layer has a dense MLP."""
    width = config.size("moe_intermediate_size", kind="intermediate")
    every = Config({**config, "intermediate_size": width, "first_k_dense_replace": 0}, {}, config.origin)
    return replace(decoder_shape(every), moe=deepseek_v3.moe_of(every))


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, style = shape(config), DecoderStyle(qkv_bias=config.flag("attention_bias"))
    return around(
        numbers, style, [*self_attention(numbers, style), *deepseek_v3.mlps(numbers), *layer_norms(numbers, style)]
    )
