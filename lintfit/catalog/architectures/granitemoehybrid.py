"""Granite 4: Mamba 2 and attention in turns, a shared MLP in every layer, with experts or without."""

from __future__ import annotations

from lintfit.catalog.architectures import _granite, _mamba2
from lintfit.catalog.architectures._blocks import Shape, attention, decoder_shape
from lintfit.catalog.architectures._decoder import Names
from lintfit.catalog.architectures._experts import moe_of
from lintfit.catalog.architectures._mamba2 import Mamba2
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

ATTENTION = frozenset({"attention", "full_attention"})


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config)
    shared = config.size("shared_intermediate_size", kind="intermediate")
    rotary = numbers.head_dim if config.get("position_embedding_type") == "rope" else 0
    if not config.count("num_local_experts", kind="experts"):
        return replace(numbers, intermediate=shared, rotary_dim=rotary)
    moe = replace(moe_of(_granite.EXPERTS, config, numbers), shared_intermediate=shared)
    return replace(numbers, rotary_dim=rotary, moe=moe)


def attending(config: Config) -> int:
    """Layers with attention: none where ``layer_types`` does not say."""
    return sum(kind in ATTENTION for kind in config.strings("layer_types"))


def mixer(config: Config) -> Mamba2:
    """The numbers of the layers without attention."""
    width = config.size("mamba_expand") * config.size("hidden_size", kind="hidden")
    return _mamba2.mixer(config, width, out_bias=config.flag("mamba_proj_bias"))


def mixers(config: Config, numbers: Shape) -> list[Tensor]:
    """Attention in some layers, Mamba 2 in the others."""
    name, bias, attended = "model.layers.{}", config.flag("attention_bias"), attending(config)
    return [
        *attention(f"{name}.self_attn", numbers, attended, bias=bias, out_bias=bias),
        *_mamba2.tensors(mixer(config), f"{name}.mamba", numbers.hidden, numbers.layers - attended),
    ]


ROW = Plain(
    "Mamba 2 or attention, and a shared MLP",
    required=("hidden_size", "num_hidden_layers", "num_attention_heads", "shared_intermediate_size"),
    renamed={"layers_block_type": "layer_types"},
    numbers=shape,
    names=Names(order="mixer more norms mlp"),
    mixer=mixers,
    mlp=_granite.experts,
    more=(_granite.shared_mlp,),
)
