"""Mamba 2: layers of its mixer and nothing else (Codestral Mamba)."""

from __future__ import annotations

from lintfit.catalog.architectures import _mamba2
from lintfit.catalog.architectures._blocks import Shape, embedding, head, norm, without_attention
from lintfit.catalog.architectures._mamba2 import Mamba2
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor

REQUIRED = ("hidden_size", "num_hidden_layers")
DEFAULTS = defaults("mamba2")
CODE = Code(sdpa=NEVER, flash_attention_2=NEVER, lora_refused_since="0.16")


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


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, name = shape(config), "backbone.layers.{}"
    hidden, layers = numbers.hidden, numbers.layers
    return (
        *embedding("backbone.embeddings", numbers.vocab, hidden),
        *_mamba2.tensors(mixer(config), f"{name}.mixer", hidden, layers),
        *norm(f"{name}.norm", hidden, layers),
        *norm("backbone.norm_f", hidden, where="final"),
        *head(numbers),
    )
