"""Gemma 3n's language models (E2B, E4B): four streams, low-rank residuals, shared keys, an input for every layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lintfit.catalog.architectures import _gemma
from lintfit.catalog.architectures._blocks import Shape, around, attention, decoder_shape, gated_mlp, linear, norm
from lintfit.catalog.architectures._decoder import GEMMA_NORMS
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = ("hidden_size", "num_hidden_layers")
DEFAULTS = defaults("gemma3n_text")
EVERY = 5
"""The last of so many layers attends to everything where a config does not list them."""


def slides(config: Mapping[str, Any], layers: int) -> list[bool]:
    """Whether each layer attends within the window only."""
    return _gemma.slides(config, layers, EVERY)


def layer_slides(config: Mapping[str, Any], layers: int, layer: int) -> bool:
    """The same of one layer."""
    return _gemma.layer_slides(config, layers, EVERY, layer)


def widths(config: Config, layers: int) -> list[int]:
    """Every layer's width of the MLP, which a config states for all or one by one."""
    if not isinstance(config.get("intermediate_size"), list | tuple):
        return [config.size("intermediate_size", kind="intermediate")] * layers
    found = config.numbers("intermediate_size")
    if len(found) != layers or min(found, default=0) < 1:
        raise config.error("intermediate_size", f"must be one whole number, or one for each of the {layers} layers")
    return list(found)


def shape(config: Config) -> Shape:
    layers = config.size("num_hidden_layers", kind="layers")
    first = Config({**config, "intermediate_size": widths(config, layers)[0]}, {}, config.origin)
    numbers = replace(decoder_shape(first, qk_norm=True), activation=config.text("hidden_activation"))
    return replace(numbers, sliding_layers=sum(slides(config, layers)))


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, layer = shape(config), "model.layers.{}"
    hidden, layers = numbers.hidden, numbers.layers
    streams, rank = config.size("altup_num_inputs"), config.size("laurel_rank", kind="hidden")
    altup, laurel = f"{layer}.altup", f"{layer}.laurel"
    found = [
        *_attentions(config, numbers),
        *(tensor for name in GEMMA_NORMS for tensor in norm(f"{layer}.{name}", hidden, layers)),
        Tensor(f"{altup}.correct_output_scale", (hidden,), layers, "norm"),
        *linear(f"{altup}.correction_coefs", streams, streams, layers),
        *linear(f"{altup}.prediction_coefs", streams**2, streams, layers),
        *linear(f"{altup}.modality_router", streams, hidden, layers),
        *norm(f"{altup}.router_norm", hidden, layers),
        *linear(f"{laurel}.linear_left", rank, hidden, layers),
        *linear(f"{laurel}.linear_right", hidden, rank, layers),
        *norm(f"{laurel}.post_laurel_norm", hidden, layers),
        *_gemma.own_inputs(config, numbers),
        *linear("model.altup_projections.{}", hidden, hidden, streams - 1, where="other"),
        *linear("model.altup_unembed_projections.{}", hidden, hidden, streams - 1, where="other"),
    ]
    for width in dict.fromkeys(each := widths(config, layers)):
        found += gated_mlp(f"{layer}.mlp", hidden, width, each.count(width))
    return around(numbers, found)


def _attentions(config: Config, numbers: Shape) -> Iterator[Tensor]:
    """Attention of all layers; the last ones take keys and values of an earlier one."""
    bias, name, layers = config.flag("attention_bias"), "model.layers.{}.self_attn", numbers.layers
    own = layers - min(layers, config.count("num_kv_shared_layers", kind="layers"))
    for tensor in attention(name, numbers, layers, bias=bias, out_bias=bias):
        yield replace(tensor, copies=own) if tensor.name.split(".")[-2] in ("k_proj", "v_proj") else tensor
    yield from norm(f"{name}.q_norm", numbers.head_dim, layers)
    yield from norm(f"{name}.k_norm", numbers.head_dim, own)
