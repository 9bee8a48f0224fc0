"""MiMo V2 Flash: windows with sinks and twice the key heads, values narrower than keys, and DeepSeek V3's experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import deepseek_v3
from lintfit.catalog.architectures._blocks import Shape, decoder_shape, linear
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, MoE, Tensor
from lintfit.frozen import replace

REQUIRED = KEYS
DEFAULTS = defaults("mimo_v2_flash")
CODE = Code(sdpa=NEVER, flash_attention_2=NEVER, flash_by_another_kernel=True)
NOTES = deepseek_v3.NOTES
EVERY = 6
"""One of so many layers attends to everything, and so does the first, where a config does not say."""
SLIDING = "sliding_attention"
SHARE = 0.334
"""The share of a head that is turned where a config does not say."""


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``MiMoV2FlashConfig.__post_init__``: the layers one by one, and the window as the checkpoint's code counts it."""
    found, layers, window = dict(given), given.get("num_hidden_layers"), given.get("sliding_window_size")
    if isinstance(window, int) and window > 0:
        found["sliding_window"] = window + 1
    if not isinstance(layers, int) or not 0 < layers <= LARGEST["layers"]:
        return found
    if given.get("layer_types") is None:
        found["layer_types"] = [
            SLIDING if index and (index + 1) % EVERY else "full_attention" for index in range(layers)
        ]
    if given.get("mlp_layer_types") is None:
        found["mlp_layer_types"] = ["dense"] + ["sparse"] * (layers - 1)
    return found


def turned(config: Mapping[str, Any], kind: str, head_dim: int) -> int:
    """Elements of a head that layers of a kind turn."""
    rope = config.get("rope_parameters")
    part = rope.get(kind) if isinstance(rope, Mapping) else None
    share = part.get("partial_rotary_factor", SHARE) if isinstance(part, Mapping) else SHARE
    return int(head_dim * (share if isinstance(share, int | float) and 0 < share <= 1 else SHARE))


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config)
    config.size("v_head_dim", kind="head_dim")
    for key in ("layer_types", "mlp_layer_types"):
        if len(config.strings(key)) != numbers.layers:
            raise config.error(key, f"must have one entry for each of the {numbers.layers} layers")
    if numbers.heads % (2 * numbers.kv_heads):
        raise config.error("num_key_value_heads", f"twice that must divide num_attention_heads ({numbers.heads})")
    moe = MoE(
        experts=config.size("n_routed_experts", "num_local_experts", kind="experts"),
        top_k=config.size("num_experts_per_tok", kind="experts"),
        intermediate=config.size("moe_intermediate_size", kind="intermediate"),
        layers=config.strings("mlp_layer_types").count("sparse"),
    )
    return replace(numbers, moe=moe)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias, name = shape(config), config.flag("attention_bias"), "model.layers.{}.self_attn"
    hidden, value, style = numbers.hidden, config.size("v_head_dim", kind="head_dim"), DecoderStyle()
    windows = config.strings("layer_types").count(SLIDING)
    layers = [
        *linear(f"{name}.q_proj", numbers.query, hidden, numbers.layers, bias=bias),
        *linear(f"{name}.o_proj", hidden, numbers.heads * value, numbers.layers),
    ]
    for keys, copies in ((numbers.kv_heads, numbers.layers - windows), (2 * numbers.kv_heads, windows)):
        layers += linear(f"{name}.k_proj", keys * numbers.head_dim, hidden, copies, bias=bias)
        layers += linear(f"{name}.v_proj", keys * value, hidden, copies, bias=bias)
    layers.append(Tensor(f"{name}.sinks", (numbers.heads,), windows, "other"))
    return around(numbers, style, [*layers, *deepseek_v3.mlps(numbers), *layer_norms(numbers, style)])
