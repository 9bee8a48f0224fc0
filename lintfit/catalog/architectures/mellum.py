"""Mellum 2: Qwen 3's attention and experts, in windows where ``layer_types`` says so, with a dense MLP where asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, decoder_shape, fused_experts, gated_mlp, router
from lintfit.catalog.architectures._decoder import DecoderStyle, around, layer_norms, self_attention
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import MoE, Tensor
from lintfit.frozen import replace

LEFT_OUT = ("decoder_sparse_step", "mlp_only_layers", "use_sliding_window", "max_window_layers")
REQUIRED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "moe_intermediate_size")
DEFAULTS = defaults("mellum")
NOTES = ("no multi-token-prediction layers (transformers does not load those of a checkpoint)",)


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``MellumConfig.__post_init__``: all layers attend in full and have experts, where nothing is said.

    Published configs have ``use_sliding_window`` as well, which the class does not read.
    """
    given = {key: value for key, value in given.items() if key not in LEFT_OUT}
    layers = given.get("num_hidden_layers", DEFAULTS["num_hidden_layers"])
    if not isinstance(layers, int) or not 0 < layers <= LARGEST["layers"]:
        return given
    kinds = {"layer_types": "full_attention", "mlp_layer_types": "sparse"}
    return {**given, **{key: [kind] * layers for key, kind in kinds.items() if given.get(key) is None}}


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config, qk_norm=True)
    moe = MoE(
        experts=config.size("num_experts", "num_local_experts", kind="experts"),
        top_k=config.size("num_experts_per_tok", kind="experts"),
        intermediate=config.size("moe_intermediate_size", kind="intermediate"),
        layers=sum(kind == "sparse" for kind in config.strings("mlp_layer_types")),
    )
    return replace(numbers, moe=moe)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias, mlp = shape(config), config.flag("attention_bias"), "model.layers.{}.mlp"
    style = DecoderStyle(qkv_bias=bias, out_bias=bias, qk_norm=(numbers.head_dim, numbers.head_dim))
    moe = numbers.moe
    assert moe is not None
    layers = [
        *self_attention(numbers, style),
        *gated_mlp(mlp, numbers.hidden, numbers.intermediate, numbers.layers - moe.layers),
        *router(f"{mlp}.gate", moe.experts, numbers.hidden, moe.layers),
        *fused_experts(f"{mlp}.experts", moe.experts, numbers.hidden, moe.intermediate, moe.layers),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
