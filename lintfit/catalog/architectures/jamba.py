"""Jamba: layers of Mamba 1, a few with attention, and in each a gated MLP or experts."""

from __future__ import annotations

from lintfit.catalog.architectures import _mamba1
from lintfit.catalog.architectures._blocks import Shape, attention, decoder_shape
from lintfit.catalog.architectures._decoder import FEED_FORWARD
from lintfit.catalog.architectures._experts import Experts
from lintfit.catalog.architectures._mamba1 import Mamba1
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace


def attends(config: Config, index: int) -> bool:
    """Whether a layer has attention (``JambaConfig.layers_block_type``)."""
    return index % config.size("attn_layer_period") == config.count("attn_layer_offset")


def routes(config: Config, index: int) -> bool:
    """Whether a layer has experts (``JambaConfig.layers_num_experts``)."""
    every = config.size("expert_layer_period")
    return config.size("num_experts", kind="experts") > 1 and index % every == config.count("expert_layer_offset")


def shape(config: Config) -> Shape:
    """Its attention knows no positions."""
    return replace(decoder_shape(config), rotary_dim=0)


def mixer(config: Config) -> Mamba1:
    """The numbers of the layers of Mamba 1."""
    return _mamba1.under_prefix(config, _mamba1.WEIGHED)


def mixers(config: Config, numbers: Shape) -> list[Tensor]:
    """Attention in some layers, Mamba 1 in the others."""
    name, attended = "model.layers.{}", sum(attends(config, index) for index in range(numbers.layers))
    return [
        *attention(f"{name}.self_attn", numbers, attended),
        *_mamba1.tensors(mixer(config), f"{name}.mamba", numbers.hidden, numbers.layers - attended),
    ]


ROW = Plain(
    "Mamba 1 or attention, an MLP or experts",
    renamed={"num_local_experts": "num_experts"},  # JambaConfig.attribute_map
    numbers=shape,
    names=FEED_FORWARD,
    mlp_bias=False,
    experts=Experts(
        ("num_experts",),
        layers=lambda config, layers: sum(routes(config, index) for index in range(layers)),
        gate="feed_forward.router",
        name="feed_forward.experts",
        optional=True,
    ),
    mixer=mixers,
)
