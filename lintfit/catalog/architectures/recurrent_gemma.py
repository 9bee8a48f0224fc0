"""RecurrentGemma (Griffin): two layers with a linear recurrence to one with attention in windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, attention, decoder_shape, linear
from lintfit.catalog.architectures._decoder import Names
from lintfit.catalog.architectures._layer_kinds import LINEAR, SLIDING, counted
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor
from lintfit.frozen import frozen, replace

BLOCKS = ("recurrent", "recurrent", "attention")
"""The pattern of layers where a config has none."""


@frozen
class Recurrence:
    """Elements of the recurrence, the blocks that its gates come in, and tokens that its convolution sees."""

    width: int
    blocks: int
    kernel: int


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``RecurrentGemmaConfig``: the window, the logits' bound and the layers by their usual names."""
    found = {key: value for key, value in given.items() if key not in ("head_dim", "layer_types")}
    for old, new in (("attention_window_size", "sliding_window"), ("logits_soft_cap", "final_logit_softcapping")):
        if given.get(old) is not None:
            found[new] = given[old]
    layers, blocks = given.get("num_hidden_layers"), given.get("block_types") or BLOCKS
    if counted(layers) and isinstance(blocks, list | tuple):
        kinds = [LINEAR if block == "recurrent" else SLIDING for block in blocks]
        found["layer_types"] = [kinds[index % len(kinds)] for index in range(layers)]
    return found


def shape(config: Config) -> Shape:
    """Half of ``intermediate_size`` is the width of the MLP."""
    numbers = decoder_shape(config)
    recurrence(config)
    if len(config.strings("layer_types")) != numbers.layers:
        raise config.error("block_types", "must be a list of blocks")
    return replace(numbers, intermediate=max(1, numbers.intermediate // 2))


def recurrence(config: Config) -> Recurrence:
    """The numbers of a layer without attention."""
    width, blocks = config.size("lru_width", default=config.size("hidden_size")), config.size("num_attention_heads")
    if width % blocks:
        raise config.error("lru_width", f"must be a multiple of num_attention_heads ({blocks})")
    return Recurrence(width, blocks, config.size("conv1d_width"))


def mixers(config: Config, numbers: Shape) -> list[Tensor]:
    """Attention in some layers, linear recurrences in the others."""
    block, bias, lru = "model.layers.{}.temporal_block", config.flag("attention_bias"), recurrence(config)
    hidden, linears = numbers.hidden, config.strings("layer_types").count(LINEAR)
    gate = (lru.blocks, lru.width // lru.blocks)
    return [
        *attention(block, numbers, numbers.layers - linears, bias=bias, out_bias=True),
        *linear(f"{block}.linear_y", lru.width, hidden, linears, bias=True),
        *linear(f"{block}.linear_x", lru.width, hidden, linears, bias=True),
        *linear(f"{block}.linear_out", hidden, lru.width, linears, bias=True),
        Tensor(f"{block}.conv_1d.weight", (lru.width, 1, lru.kernel), linears, "conv"),
        Tensor(f"{block}.conv_1d.bias", (lru.width,), linears, "bias"),
        Tensor(f"{block}.rg_lru.recurrent_param", (lru.width,), linears, "other"),
        *(
            Tensor(f"{block}.rg_lru.{part}_gate_{what}", size, linears, "other")
            for part in ("input", "recurrent")
            for what, size in (("weight", (*gate, gate[1])), ("bias", gate))
        ),
    ]


ROW = Plain(
    "Linear recurrences and attention",
    own={"sliding_window": 2048, "final_logit_softcapping": 30.0, "block_types": BLOCKS},
    normalised=normalised,
    numbers=shape,
    names=Names(
        up=("mlp_block.gate_proj", "mlp_block.up_proj"),
        down="mlp_block.down_proj",
        norms=("temporal_pre_norm", "channel_pre_norm"),
        final="model.final_norm",
    ),
    mlp_bias=True,
    mixer=mixers,
)
