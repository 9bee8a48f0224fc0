"""The language model of Qwen 3.5 and 3.6 with routed and shared experts: 35B-A3B, 122B-A10B, 397B-A17B."""

from __future__ import annotations

from lintfit.catalog.architectures import qwen3_5_text, qwen3_next
from lintfit.catalog.architectures._blocks import Shape, decoder_shape, fused_experts, gated_mlp, router
from lintfit.catalog.architectures._decoder import DecoderStyle, around, layer_norms
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, MoE, Tensor
from lintfit.frozen import replace

REQUIRED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_experts", "moe_intermediate_size")
DEFAULTS = defaults("qwen3_5_moe_text", full_attention_interval=4, intermediate_size=512)
CODE = Code(liger=True)
NOTES = qwen3_next.NOTES


def shape(config: Config) -> Shape:
    moe = MoE(
        experts=config.size("num_experts", kind="experts"),
        top_k=config.size("num_experts_per_tok", kind="experts"),
        intermediate=config.size("moe_intermediate_size", kind="intermediate"),
        layers=config.size("num_hidden_layers", kind="layers"),
        shared_intermediate=config.size("shared_expert_intermediate_size", kind="intermediate"),
    )
    return replace(decoder_shape(config, qk_norm=True), intermediate=moe.shared_intermediate, moe=moe)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, style, mlp = shape(config), DecoderStyle(), "model.layers.{}.mlp"
    hidden, moe = numbers.hidden, numbers.moe
    assert moe is not None
    layers = [
        *qwen3_5_text.mixers(config, numbers),
        *router(f"{mlp}.gate", moe.experts, hidden, moe.layers),
        *fused_experts(f"{mlp}.experts", moe.experts, hidden, moe.intermediate, moe.layers),
        *gated_mlp(f"{mlp}.shared_expert", hidden, moe.shared_intermediate, moe.layers),
        *router(f"{mlp}.shared_expert_gate", 1, hidden, moe.layers),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
