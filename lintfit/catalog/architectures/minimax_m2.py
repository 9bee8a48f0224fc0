"""MiniMax M2: Mixtral's layout with norms over all query and key heads, and sigmoid routing."""

from __future__ import annotations

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import Shape, fused_experts, router
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

MIXTRAL = known("mixtral")

REQUIRED = KEYS
DEFAULTS = defaults("minimax_m2")
NOTES = ("no multi-token-prediction layers (transformers does not load those of a checkpoint)",)


def shape(config: Config) -> Shape:
    numbers = MIXTRAL.shape(config)
    turned = config.count("rotary_dim", kind="head_dim") if config.get("rotary_dim") else numbers.rotary_dim
    return replace(numbers, qk_norm=True, rotary_dim=turned)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, mlp = shape(config), "model.layers.{}.mlp"
    style = DecoderStyle(qk_norm=(numbers.query, numbers.key_value))
    assert numbers.moe is not None
    experts = numbers.moe.experts
    layers = [
        *self_attention(numbers, style),
        *router(f"{mlp}.gate", experts, numbers.hidden, numbers.layers),
        *fused_experts(f"{mlp}.experts", experts, numbers.hidden, numbers.intermediate, numbers.layers),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
