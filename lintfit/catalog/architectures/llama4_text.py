"""Llama 4's language model: routed experts beside a shared one in all or every second layer (Scout, Maverick)."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import Names
from lintfit.catalog.architectures._experts import Experts
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import Config
from lintfit.catalog.facts import NEVER, Code
from lintfit.frozen import replace


def routed_layers(config: Config) -> list[int]:
    """The numbers of the layers with experts (``moe_layers``, else every ``interleave_moe_layer_step``-th)."""
    layers = config.size("num_hidden_layers", kind="layers")
    if config.get("moe_layers") is not None:
        return [layer for layer in config.numbers("moe_layers") if 0 <= layer < layers]
    step = config.size("interleave_moe_layer_step", kind="layers")
    return list(range(step - 1, layers, step))


def shape(config: Config) -> Shape:
    """The numbers; ``intermediate`` is the dense layers', the window that of chunks."""
    dense = config.size("intermediate_size_mlp", kind="intermediate")
    chunk = config.count("attention_chunk_size", kind="positions") or None
    return replace(decoder_shape(config), intermediate=dense, sliding_window=chunk)


ROW = Plain(
    "Experts stored input-first",
    numbers=shape,
    names=Names(up=("feed_forward.gate_proj", "feed_forward.up_proj"), down="feed_forward.down_proj"),
    mlp_bias=False,
    experts=Experts(
        ("num_local_experts",),
        width="intermediate_size",
        layers=lambda config, layers: len(routed_layers(config)),
        shared_width="intermediate_size",
        gate="feed_forward.router",
        name="feed_forward.experts",
        shared="feed_forward.shared_expert",
        input_first=True,
    ),
    code=Code(flash_attention_2=NEVER, liger=True),
)
