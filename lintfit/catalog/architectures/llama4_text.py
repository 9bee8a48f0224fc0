"""Llama 4's language model: routed experts beside a shared one in all or every second layer (Scout, Maverick)."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, decoder_shape, gated_mlp, router
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, MoE, Tensor
from lintfit.frozen import replace

REQUIRED = KEYS
DEFAULTS = defaults("llama4_text")
CODE = Code(flash_attention_2=NEVER, liger=True)


def routed_layers(config: Config) -> list[int]:
    """The numbers of the layers with experts (``moe_layers``, else every ``interleave_moe_layer_step``-th)."""
    layers = config.size("num_hidden_layers", kind="layers")
    if config.get("moe_layers") is not None:
        return [layer for layer in config.numbers("moe_layers") if 0 <= layer < layers]
    step = config.size("interleave_moe_layer_step", kind="layers")
    return list(range(step - 1, layers, step))


def shape(config: Config) -> Shape:
    width = config.size("intermediate_size", kind="intermediate")
    moe = MoE(
        experts=config.size("num_local_experts", kind="experts"),
        top_k=config.size("num_experts_per_tok", kind="experts"),
        intermediate=width,
        layers=len(routed_layers(config)),
        shared_intermediate=width,
    )
    dense = config.size("intermediate_size_mlp", kind="intermediate")
    chunk = config.count("attention_chunk_size", kind="positions") or None
    return replace(decoder_shape(config), intermediate=dense, moe=moe, sliding_window=chunk)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias, mlp = shape(config), config.flag("attention_bias"), "model.layers.{}.feed_forward"
    style, moe, hidden = DecoderStyle(qkv_bias=bias, out_bias=bias), numbers.moe, numbers.hidden
    assert moe is not None
    layers = [
        *self_attention(numbers, style),
        *gated_mlp(mlp, hidden, numbers.intermediate, numbers.layers - moe.layers),
        *router(f"{mlp}.router", moe.experts, hidden, moe.layers),
        Tensor(f"{mlp}.experts.gate_up_proj", (moe.experts, hidden, 2 * moe.intermediate), moe.layers, "expert"),
        Tensor(f"{mlp}.experts.down_proj", (moe.experts, moe.intermediate, hidden), moe.layers, "expert"),
        *gated_mlp(f"{mlp}.shared_expert", hidden, moe.shared_intermediate, moe.layers),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
