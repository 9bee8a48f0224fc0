"""Falcon H1: Mamba 2's mixer beside attention in every layer, and a gated MLP."""

from __future__ import annotations

from lintfit.catalog.architectures import _mamba2
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.architectures._decoder import FEED_FORWARD
from lintfit.catalog.architectures._mamba2 import Mamba2
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Code, Tensor
from lintfit.frozen import replace


def mixer(config: Config) -> Mamba2:
    """The numbers of the mixer, whose width a config states or derives."""
    width = config.count("mamba_d_ssm") or config.size("mamba_expand") * config.size("hidden_size", kind="hidden")
    out_bias, normed = config.flag("projectors_bias"), config.flag("mamba_rms_norm")
    return _mamba2.mixer(config, width, out_bias=out_bias, normed=normed)


def mixers(config: Config, numbers: Shape) -> list[Tensor]:
    """The mixers beside attention."""
    return _mamba2.tensors(mixer(config), "model.layers.{}.mamba", numbers.hidden, numbers.layers)


ROW = Plain(
    "Mamba 2 beside attention",
    required=("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
    names=replace(FEED_FORWARD, order="mixer more mlp norms"),
    more=(mixers,),
    code=Code(liger=True, lora_refused_since="0.16"),
)
