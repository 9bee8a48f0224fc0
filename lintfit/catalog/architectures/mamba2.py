"""Mamba 2: layers of its mixer and nothing else (Codestral Mamba)."""

from __future__ import annotations

from lintfit.catalog.architectures import _mamba2, mamba
from lintfit.catalog.architectures._blocks import Shape, without_attention
from lintfit.catalog.architectures._mamba2 import Mamba2
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace


def shape(config: Config) -> Shape:
    return without_attention(config, mixer(config).width)


def mixer(config: Config) -> Mamba2:
    """The numbers of a layer, as ``Mamba2Config.validate_architecture`` has them."""
    heads, dim, bias = config.size("num_heads", kind="heads"), config.size("head_dim"), config.flag("use_bias")
    width, groups = config.size("expand") * config.size("hidden_size", kind="hidden"), config.size("n_groups")
    if heads * dim != width:
        raise config.error("num_heads", f"times head_dim ({dim}) must be expand times hidden_size ({width})")
    if heads % groups:
        raise config.error("n_groups", f"must divide num_heads ({heads})")
    return Mamba2(
        heads=heads,
        dim=dim,
        groups=groups,
        state=config.size("state_size"),
        kernel=config.size("conv_kernel"),
        chunk=config.size("chunk_size"),
        conv_bias=config.flag("use_conv_bias"),
        in_bias=bias,
        out_bias=bias,
    )


def mixers(config: Config, numbers: Shape) -> list[Tensor]:
    """The parameters of all layers' mixers."""
    return _mamba2.tensors(mixer(config), "backbone.layers.{}.mixer", numbers.hidden, numbers.layers)


ROW = replace(mamba.ROW, about="Mamba 2's mixer alone", numbers=shape, mixer=mixers)
