"""Falcon H1: Mamba 2's mixer beside attention in every layer, and a gated MLP."""

from __future__ import annotations

from lintfit.catalog.architectures import _mamba2
from lintfit.catalog.architectures._blocks import Shape, attention, decoder_shape, embedding, gated_mlp, head, norm
from lintfit.catalog.architectures._mamba2 import Mamba2
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor

REQUIRED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
DEFAULTS = defaults("falcon_h1")
CODE = Code(liger=True, lora_refused_since="0.16")


def shape(config: Config) -> Shape:
    return decoder_shape(config)


def mixer(config: Config) -> Mamba2:
    """The numbers of the mixer, whose width a config states or derives."""
    width = config.count("mamba_d_ssm") or config.size("mamba_expand") * config.size("hidden_size", kind="hidden")
    out_bias, normed = config.flag("projectors_bias"), config.flag("mamba_rms_norm")
    return _mamba2.mixer(config, width, out_bias=out_bias, normed=normed)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, name, bias = shape(config), "model.layers.{}", config.flag("attention_bias")
    hidden, layers = numbers.hidden, numbers.layers
    found = [
        *attention(f"{name}.self_attn", numbers, layers, bias=bias, out_bias=bias),
        *_mamba2.tensors(mixer(config), f"{name}.mamba", hidden, layers),
        *gated_mlp(f"{name}.feed_forward", hidden, numbers.intermediate, layers, bias=config.flag("mlp_bias")),
        *norm(f"{name}.input_layernorm", hidden, layers),
        *norm(f"{name}.pre_ff_layernorm", hidden, layers),
    ]
    return (
        *embedding("model.embed_tokens", numbers.vocab, hidden),
        *found,
        *norm("model.final_layernorm", hidden, where="final"),
        *head(numbers),
    )
