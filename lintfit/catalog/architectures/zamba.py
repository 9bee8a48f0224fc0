"""Zamba: layers of Mamba 1 with several heads, before some of which stands one transformer block that they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _mamba1, zamba2
from lintfit.catalog.architectures._blocks import Shape, gated_mlp, norm
from lintfit.catalog.architectures._mamba1 import Mamba1
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

DEFAULTS = defaults("zamba")
BEFORE = ("linear_attention", "linear_attention", zamba2.HYBRID)
"""The kinds of the first layers where a config does not list them; behind them the period counts anew."""


def normalised(given: Mapping[str, Any]) -> dict[str, Any]:
    """The kinds of layers as a list, which also says how many layers there are."""
    values = dict(given)
    kinds = values.get("layers_block_type") or values.get("layer_types")
    if kinds is None:
        layers, every, offset = (
            values.get(key, DEFAULTS[key]) for key in ("num_hidden_layers", "attn_layer_period", "attn_layer_offset")
        )
        if not all(isinstance(value, int) for value in (layers, every, offset)) or every < 1:
            return values
        rest = min(layers, LARGEST["layers"]) - len(BEFORE)
        kinds = [*BEFORE, *(zamba2.HYBRID if index % every == offset else BEFORE[0] for index in range(rest))]
    return zamba2.with_kinds(values, kinds)


def shape(config: Config) -> Shape:
    """The numbers of a config whose layers are known."""
    config.size("num_hidden_layers", kind="layers")
    if config.get("layer_types") is None:  # for numbers that are none
        config.size("attn_layer_period")
        config.count("attn_layer_offset")
        raise config.error("layers_block_type", "must list the kinds of layers")
    wide = 2 * config.size("hidden_size", kind="hidden")
    usual = max(wide // config.size("num_attention_heads", kind="heads"), 1)
    return zamba2.wide_shape(config, config.size("attention_head_dim", kind="hidden", default=usual))


def mixer(config: Config) -> Mamba1:
    """The numbers of the mixer of every layer, all heads of it together."""
    return _mamba1.under_prefix(config)


def mixers(config: Config, numbers: Shape) -> list[Tensor]:
    """The mixers of all layers, and the transformer block in front of some."""
    found = zamba2.hybrids(config)
    parts = zamba2.with_norms(config, numbers, lambda name, copies: _mixer(config, name, copies))
    block = _block(config, numbers, f"model.layers.{found[0]}.shared_transf") if found else []
    return parts + [replace(tensor, holders=len(found)) for tensor in block]


def _mixer(config: Config, name: str, copies: int) -> list[Tensor]:
    """Mamba 1's parameters, those behind the convolution of each head by itself."""
    numbers, heads = mixer(config), config.size("n_mamba_heads", kind="heads")
    if numbers.width % heads:
        raise config.error("n_mamba_heads", f"must divide what all heads have together ({numbers.width})")
    dim = numbers.width // heads
    each = {
        "A_log": (dim, numbers.state),
        "D": (dim,),
        "x_proj_weight": (numbers.selected, dim),
        "dt_proj_weight": (dim, numbers.rank),
        "dt_proj_bias": (dim,),
    }
    hidden = config.size("hidden_size", kind="hidden")
    alike = [f"{name}.{part}" for part in ("A_log", "D")]
    rest = [
        tensor
        for tensor in _mamba1.tensors(numbers, name, hidden, copies)
        if tensor.name not in alike and "x_proj" not in tensor.name and "dt_proj" not in tensor.name
    ]
    return [*(Tensor(f"{name}.{part}", (heads, *size), copies, "other") for part, size in each.items()), *rest]


def _block(config: Config, numbers: Shape, name: str) -> list[Tensor]:
    """The block that all hybrid layers share."""
    hidden = numbers.hidden
    wide = config.size("attention_hidden_size", kind="hidden", default=2 * hidden)
    if wide != 2 * hidden:
        raise config.error("attention_hidden_size", f"must be twice the hidden size ({2 * hidden})")
    return [
        *zamba2.attention(numbers, f"{name}.self_attn"),
        *gated_mlp(f"{name}.feed_forward", hidden, numbers.intermediate, 1),
        *norm(f"{name}.input_layernorm", wide),
        *norm(f"{name}.pre_ff_layernorm", hidden),
    ]


ROW = Plain(
    "Mamba 1 and a shared transformer block",
    required=("hidden_size", "num_attention_heads"),
    normalised=normalised,
    numbers=shape,
    names=zamba2.NAMES,
    mixer=mixers,
)
