"""Bamba: layers of Mamba 2, a few with attention, and a gated MLP in each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _mamba2
from lintfit.catalog.architectures._blocks import Shape, attention, decoder_shape
from lintfit.catalog.architectures._decoder import FEED_FORWARD
from lintfit.catalog.architectures._mamba2 import Mamba2
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

ATTENTION = "full_attention"
TURNED = 2
"""One of so many elements of a head is turned, whatever the config says (``BambaConfig.__post_init__``)."""


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``BambaConfig.layers_block_type``: the layers one by one, by the numbers of those with attention."""
    layers, listed = given.get("num_hidden_layers"), given.get("attn_layer_indices")
    if not isinstance(layers, int | float) or not 0 < layers <= LARGEST["layers"]:
        return given
    attends = listed if isinstance(listed, list | tuple) else ()
    types = [ATTENTION if index in attends else "linear_attention" for index in range(int(layers))]
    return {**given, "layer_types": types}


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config)
    config.numbers("attn_layer_indices")  # a list of layers, where there is one
    return replace(numbers, rotary_dim=numbers.head_dim // TURNED)


def mixer(config: Config) -> Mamba2:
    """The numbers of the layers of Mamba 2."""
    bias = config.flag("mamba_proj_bias")
    width = config.size("mamba_expand") * config.size("hidden_size", kind="hidden")
    return _mamba2.mixer(config, width, out_bias=bias)


def mixers(config: Config, numbers: Shape) -> list[Tensor]:
    """Attention in some layers, Mamba 2 in the others."""
    name, bias = "model.layers.{}", config.flag("attention_bias")
    attended = config.strings("layer_types").count(ATTENTION)
    return [
        *attention(f"{name}.self_attn", numbers, attended, bias=bias, out_bias=bias),
        *_mamba2.tensors(mixer(config), f"{name}.mamba", numbers.hidden, numbers.layers - attended),
    ]


ROW = Plain("Mamba 2 or attention", normalised=normalised, numbers=shape, names=FEED_FORWARD, mixer=mixers)
