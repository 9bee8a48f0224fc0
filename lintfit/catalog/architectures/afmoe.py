"""AFMoE (Trinity Nano and Mini): gated attention in windows, four norms a layer, experts beside a shared one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import deepseek_v3
from lintfit.catalog.architectures._blocks import Shape, decoder_shape, linear
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms, self_attention
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import MoE, Tensor
from lintfit.frozen import replace

REQUIRED = KEYS
DEFAULTS = defaults("afmoe")
LAYER_NORMS = ("input_layernorm", "post_attention_layernorm", "pre_mlp_layernorm", "post_mlp_layernorm")


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``AfmoeConfig.__post_init__``: the layers one by one."""
    layers = given.get("num_hidden_layers", DEFAULTS["num_hidden_layers"])
    every = given.get("global_attn_every_n_layers", DEFAULTS["global_attn_every_n_layers"])
    counted = all(isinstance(count, int) and 0 < count <= LARGEST["layers"] for count in (layers, every))
    if given.get("layer_types") is not None or not counted:
        return given
    kinds = ["sliding_attention" if (index + 1) % every else "full_attention" for index in range(layers)]
    return {**given, "layer_types": kinds}


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config, qk_norm=True)
    width = config.size("moe_intermediate_size", kind="intermediate")
    moe = MoE(
        experts=config.size("num_experts", "num_local_experts", kind="experts"),
        top_k=config.size("num_experts_per_tok", kind="experts"),
        intermediate=width,
        layers=max(0, numbers.layers - config.count("num_dense_layers", kind="layers")),
        shared_intermediate=width * config.count("num_shared_experts", kind="experts"),
    )
    return replace(numbers, moe=moe)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias, layer = shape(config), config.flag("attention_bias"), "model.layers.{}"
    head, moe = (numbers.head_dim, numbers.head_dim), numbers.moe
    assert moe is not None
    style = DecoderStyle(qkv_bias=bias, out_bias=bias, qk_norm=head, layer_norms=LAYER_NORMS)
    mlps = [
        replace(tensor, name=tensor.name.replace(".mlp.gate.", ".mlp.router.gate."))
        for tensor in deepseek_v3.mlps(numbers)
    ]
    layers = [
        *self_attention(numbers, style),
        *linear(f"{layer}.self_attn.gate_proj", numbers.query, numbers.hidden, numbers.layers),
        *mlps,
        Tensor(f"{layer}.mlp.expert_bias", (moe.experts,), moe.layers, "other"),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
