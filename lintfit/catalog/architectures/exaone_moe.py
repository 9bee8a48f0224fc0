"""K-EXAONE: windows and norms on the heads as in EXAONE 4, norms before the blocks, and DeepSeek V3's experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _sliding, deepseek_v3
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import MoE, Tensor
from lintfit.frozen import replace

REQUIRED = KEYS
DEFAULTS = defaults("exaone_moe")
NOTES = deepseek_v3.NOTES


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``ExaoneMoeConfig.__post_init__``: the layers' attention one by one."""
    layers, every = (given.get(key, DEFAULTS.get(key)) for key in ("num_hidden_layers", "sliding_window_pattern"))
    return _sliding.named(given, layers, every)


def sparse_layers(config: Config, layers: int) -> int:
    """Layers with experts: as ``mlp_layer_types`` says, or all but the first ``first_k_dense_replace``."""
    kinds = config.strings("mlp_layer_types")
    if not kinds:
        return max(0, layers - config.count("first_k_dense_replace", kind="layers"))
    if len(kinds) != layers:
        raise config.error("mlp_layer_types", f"must have one entry for each of the {layers} layers")
    return kinds.count("sparse")


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config, qk_norm=True)
    width = config.size("moe_intermediate_size", kind="intermediate")
    moe = MoE(
        experts=config.size("num_experts", "num_local_experts", kind="experts"),
        top_k=config.size("num_experts_per_tok", kind="experts"),
        intermediate=width,
        layers=sparse_layers(config, numbers.layers),
        shared_intermediate=width * config.count("num_shared_experts", kind="experts"),
    )
    return replace(numbers, moe=moe)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    style = DecoderStyle(qk_norm=(numbers.head_dim, numbers.head_dim))
    layers = [*self_attention(numbers, style), *deepseek_v3.mlps(numbers), *layer_norms(numbers, style)]
    return around(numbers, style, layers)
