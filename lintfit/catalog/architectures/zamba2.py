"""Zamba2: layers of Mamba 2, before some of which stands one of a few transformer blocks that these layers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lintfit.catalog.architectures import _mamba2
from lintfit.catalog.architectures._blocks import Shape, heads_of, linear, norm
from lintfit.catalog.architectures._decoder import Names
from lintfit.catalog.architectures._mamba2 import Mamba2
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

DEFAULTS = defaults("zamba2")
HYBRID = "hybrid"
NAMES = Names(down="", norms=(), final="model.final_layernorm")
DEFAULT_HYBRIDS = (6, 12, 18, 24, 30, 36, 42, 47, 51)
"""The layers with a block where a config does not list them (``Zamba2Config.__post_init__``)."""


def normalised(given: Mapping[str, Any]) -> dict[str, Any]:
    """The kinds of layers as a list, which also says how many layers there are."""
    values = dict(given)
    kinds = values.get("layers_block_type") or values.get("layer_types")
    if kinds is None:
        layers = int(DEFAULTS["num_hidden_layers"])
        kinds = [HYBRID if index in DEFAULT_HYBRIDS else "linear_attention" for index in range(layers)]
    return with_kinds(values, kinds)


def with_kinds(given: Mapping[str, Any], kinds: Any) -> dict[str, Any]:
    """A config with these kinds of layers, which also say how many there are."""
    listed = isinstance(kinds, list) and 0 < len(kinds) <= LARGEST["layers"]
    return {**given, "layer_types": kinds, **({"num_hidden_layers": len(kinds)} if listed else {})}


def shape(config: Config) -> Shape:
    """The numbers; each head is as wide as the stream and the embeddings beside it allow."""
    hidden, heads = config.size("hidden_size", kind="hidden"), config.size("num_attention_heads", kind="heads")
    if 2 * hidden % heads:
        raise config.error("num_attention_heads", f"must divide twice the hidden size ({2 * hidden})")
    numbers = wide_shape(config, 2 * hidden // heads)
    return replace(numbers, rotary_dim=numbers.head_dim if config.flag("use_mem_rope") else 0)


def wide_shape(config: Config, head_dim: int) -> Shape:
    """Attention is twice as wide as the stream: it sees the embeddings beside it."""
    hidden = config.size("hidden_size", kind="hidden")
    heads, kv_heads = heads_of(config)
    return Shape(
        hidden=hidden,
        layers=config.size("num_hidden_layers", kind="layers"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=config.size("intermediate_size", kind="intermediate", default=4 * hidden),
        vocab=config.size("vocab_size", kind="vocab"),
        tied=config.flag("tie_word_embeddings"),
        gated=True,
        norm="rmsnorm",
        activation=config.text("hidden_act", default="gelu"),
        max_positions=config.count("max_position_embeddings", kind="positions") or None,
    )


def mixer(config: Config) -> Mamba2:
    """The numbers of Mamba 2's mixer, which every layer has."""
    heads = config.size("n_mamba_heads", kind="heads")
    width = int(config.size("mamba_expand") * config.size("hidden_size", kind="hidden"))
    if width % heads:
        raise config.error("n_mamba_heads", f"must divide what all heads have together ({width})")
    bias = config.flag("add_bias_linear")
    return Mamba2(
        heads=heads,
        dim=width // heads,
        groups=config.size("mamba_ngroups"),
        state=config.size("mamba_d_state"),
        kernel=config.size("mamba_d_conv"),
        chunk=config.size("chunk_size"),
        conv_bias=True,
        in_bias=bias,
        out_bias=bias,
    )


def hybrids(config: Config) -> tuple[int, ...]:
    """The layers in front of whose mixer a transformer block stands."""
    return tuple([index for index, kind in enumerate(config.strings("layer_types")) if kind == HYBRID])


def mixers(config: Config, numbers: Shape) -> list[Tensor]:
    """The mixers of all layers, and the transformer blocks in front of some."""
    scan, found, hidden = mixer(config), hybrids(config), numbers.hidden
    parts = with_norms(config, numbers, lambda name, copies: _mamba2.tensors(scan, name, hidden, copies))
    shared = config.size("num_mem_blocks")
    for block in range(min(shared, len(found))):
        parts += _block(config, numbers, f"model.layers.{found[block]}.shared_transformer", found[block::shared], found)
    return parts


def with_norms(config: Config, numbers: Shape, scan: Callable[[str, int], list[Tensor]]) -> list[Tensor]:
    """The mixers with their norms, and what brings the transformer blocks' results into the stream.

    ``scan``: the mixers of this name in so many layers.
    """
    both, parts = len(hybrids(config)), []
    if both and not numbers.tied:
        raise config.error("tie_word_embeddings", "must be true: without it transformers shares no block either")
    for name, copies in (("model.layers.{}", numbers.layers - both), ("model.layers.{}.mamba_decoder", both)):
        parts += scan(f"{name}.mamba", copies) + norm(f"{name}.input_layernorm", numbers.hidden, copies)
    return parts + linear("model.layers.{}.linear", numbers.hidden, numbers.hidden, both)


def attention(numbers: Shape, name: str) -> list[Tensor]:
    """Projections of the stream and the embeddings beside it."""
    wide = 2 * numbers.hidden
    return [
        *linear(f"{name}.q_proj", numbers.query, wide),
        *linear(f"{name}.k_proj", numbers.key_value, wide),
        *linear(f"{name}.v_proj", numbers.key_value, wide),
        *linear(f"{name}.o_proj", numbers.hidden, numbers.query),
    ]


def _block(config: Config, numbers: Shape, name: str, layers: tuple[int, ...], every: tuple[int, ...]) -> list[Tensor]:
    """A block that these of all hybrid layers share, each with low-rank matrices of its own.

    transformers ties parameters, not modules: every one of the layers has the whole block, and of low-rank matrices all
    that the others have, too, which it never runs.
    """
    hidden, wide, rank = numbers.hidden, 2 * numbers.hidden, config.size("adapter_rank")
    bias, width = config.flag("add_bias_linear"), numbers.intermediate
    attends, mlp = f"{name}.self_attn", f"{name}.feed_forward"
    found = [
        *attention(numbers, attends),
        *linear(f"{mlp}.gate_up_proj", 2 * width, hidden, bias=bias),
        *linear(f"{mlp}.down_proj", hidden, width, bias=bias),
        *norm(f"{name}.input_layernorm", wide),
        *norm(f"{name}.pre_ff_layernorm", hidden),
    ]
    own = [(f"{mlp}.gate_up_proj_adapter_list", hidden, 2 * width)]
    if config.flag("use_shared_attention_adapter"):
        own += [(f"{attends}.linear_{which}_adapter_list", wide, wide) for which in "qkv"]
    found = [replace(tensor, holders=len(layers)) for tensor in found]
    for layer in layers:
        slot = every.index(layer)
        for module, taken, given in own:
            pair = [*linear(f"{module}.{slot}.0", rank, taken), *linear(f"{module}.{slot}.1", given, rank)]
            found += [replace(tensor, holders=len(layers), idle=len(layers) - 1) for tensor in pair]
    return found


ROW = Plain(
    "Mamba 2 and shared transformer blocks",
    required=("hidden_size", "num_attention_heads"),
    normalised=normalised,
    numbers=shape,
    names=NAMES,
    mixer=mixers,
)
