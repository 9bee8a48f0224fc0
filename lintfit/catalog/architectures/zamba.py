"""Zamba: layers of Mamba 1 with several heads, before some of which stands one transformer block that they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _mamba1, zamba2
from lintfit.catalog.architectures._blocks import Shape, embedding, gated_mlp, head, heads_of, linear, norm
from lintfit.catalog.architectures._mamba1 import Mamba1
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = ("hidden_size", "num_attention_heads")
DEFAULTS = defaults("zamba")
BEFORE = ("linear_attention", "linear_attention", zamba2.HYBRID)
"""The kinds of the first layers where a config does not list them; behind them the period counts anew."""


def normalised(given: Mapping[str, Any]) -> dict[str, Any]:
    """The kinds of layers as a list, which also says how many layers there are."""
    values = dict(given)
    kinds = values.get("layers_block_type") or values.get("layer_types")
    if kinds is None:
        layers, every, offset = (
            values.get(key, DEFAULTS[key]) for key in ("num_hidden_layers", "attn_layer_period", "attn_layer_offset")
        )
        if not all(isinstance(value, int) for value in (layers, every, offset)) or every < 1:
            return values
        rest = min(layers, LARGEST["layers"]) - len(BEFORE)
        kinds = [*BEFORE, *(zamba2.HYBRID if index % every == offset else BEFORE[0] for index in range(rest))]
    values["layer_types"] = kinds
    if isinstance(kinds, list) and 0 < len(kinds) <= LARGEST["layers"]:
        values["num_hidden_layers"] = len(kinds)
    return values


def shape(config: Config) -> Shape:
    """Attention is twice as wide as the stream: it sees the embeddings beside it."""
    hidden = config.size("hidden_size", kind="hidden")
    heads, kv_heads = heads_of(config)
    layers = config.size("num_hidden_layers", kind="layers")
    if config.get("layer_types") is None:  # for numbers that are none
        config.size("attn_layer_period")
        config.count("attn_layer_offset")
        raise config.error("layers_block_type", "must list the kinds of layers")
    return Shape(
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=config.size("attention_head_dim", kind="hidden", default=max(2 * hidden // heads, 1)),
        intermediate=config.size("intermediate_size", kind="intermediate"),
        vocab=config.size("vocab_size", kind="vocab"),
        tied=config.flag("tie_word_embeddings"),
        gated=True,
        norm="rmsnorm",
        activation=config.text("hidden_act", default="gelu"),
        max_positions=config.count("max_position_embeddings", kind="positions") or None,
        rotary_dim=0,
    )


def mixer(config: Config) -> Mamba1:
    """The numbers of the mixer of every layer, all heads of it together."""
    return _mamba1.under_prefix(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, found = shape(config), zamba2.hybrids(config)
    hidden, layers, both = numbers.hidden, numbers.layers, len(found)
    parts: list[Tensor] = []
    for name, copies in (("model.layers.{}", layers - both), ("model.layers.{}.mamba_decoder", both)):
        if copies:
            parts += _mixer(config, f"{name}.mamba", copies)
            parts += norm(f"{name}.input_layernorm", hidden, copies)
    if both and not numbers.tied:
        raise config.error("tie_word_embeddings", "must be true: without it transformers shares no block either")
    if both:
        parts += linear("model.layers.{}.linear", hidden, hidden, both)
        block = _block(config, numbers, f"model.layers.{found[0]}.shared_transf")
        parts += [replace(tensor, holders=both) for tensor in block]
    return (
        *embedding("model.embed_tokens", numbers.vocab, hidden),
        *parts,
        *norm("model.final_layernorm", hidden, where="final"),
        *head(numbers),
    )


def _mixer(config: Config, name: str, copies: int) -> list[Tensor]:
    """Mamba 1's parameters, those behind the convolution of each head by itself."""
    numbers, heads = mixer(config), config.size("n_mamba_heads", kind="heads")
    if numbers.width % heads:
        raise config.error("n_mamba_heads", f"must divide what all heads have together ({numbers.width})")
    dim = numbers.width // heads
    each = {
        "A_log": (dim, numbers.state),
        "D": (dim,),
        "x_proj_weight": (numbers.selected, dim),
        "dt_proj_weight": (dim, numbers.rank),
        "dt_proj_bias": (dim,),
    }
    hidden = config.size("hidden_size", kind="hidden")
    alike = [f"{name}.{part}" for part in ("A_log", "D")]
    rest = [
        tensor
        for tensor in _mamba1.tensors(numbers, name, hidden, copies)
        if tensor.name not in alike and "x_proj" not in tensor.name and "dt_proj" not in tensor.name
    ]
    return [*(Tensor(f"{name}.{part}", (heads, *size), copies, "other") for part, size in each.items()), *rest]


def _block(config: Config, numbers: Shape, name: str) -> list[Tensor]:
    """The block that all hybrid layers share."""
    hidden = numbers.hidden
    wide = config.size("attention_hidden_size", kind="hidden", default=2 * hidden)
    if wide != 2 * hidden:
        raise config.error("attention_hidden_size", f"must be twice the hidden size ({2 * hidden})")
    return [
        *linear(f"{name}.self_attn.q_proj", numbers.query, wide),
        *linear(f"{name}.self_attn.k_proj", numbers.key_value, wide),
        *linear(f"{name}.self_attn.v_proj", numbers.key_value, wide),
        *linear(f"{name}.self_attn.o_proj", hidden, numbers.query),
        *gated_mlp(f"{name}.feed_forward", hidden, numbers.intermediate, 1),
        *norm(f"{name}.input_layernorm", wide),
        *norm(f"{name}.pre_ff_layernorm", hidden),
    ]
