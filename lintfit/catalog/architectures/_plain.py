"""A plain architecture as one row: a decoder with llama's parameter names, or another architecture by its own name."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal

from lintfit.catalog.architectures import _sliding
from lintfit.catalog.architectures._architecture import Architecture, of_module
from lintfit.catalog.architectures._blocks import (
    Norm,
    Shape,
    decoder_shape,
    fused_experts,
    gated_mlp,
    linear,
    plain_mlp,
    router,
)
from lintfit.catalog.architectures._decoder import (
    KEYS,
    LAYER_NORMS,
    DecoderStyle,
    around,
    fused_decoder,
    layer_norms,
    self_attention,
)
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, MoE, Tensor
from lintfit.frozen import field, frozen, replace


@frozen
class Experts:
    """Routed experts in every layer, each as wide as ``intermediate_size``, in one parameter for each projection."""

    keys: tuple[str, ...]
    """How a config may spell their number."""
    gate: str = "mlp.gate"
    """The module that scores them, below a layer."""
    name: str = "mlp.experts"


@frozen
class Plain:
    """Where a type differs from llama. A bias is there, is not, or the key of a config says so."""

    about: str
    own: Mapping[str, Any] = field(default_factory=dict)
    """Defaults that transformers' class does not declare, or code of the type's own repository."""
    like: str = ""
    """The type whose defaults lie under these; its own where nothing is said."""
    required: tuple[str, ...] = KEYS
    """Keys that a config must state itself."""
    norm: Norm = "rmsnorm"
    norm_bias: bool = False
    norm_weight: bool = True
    layer_norms: tuple[str, ...] = LAYER_NORMS
    qk_norm: Literal["", "head", "all"] = ""
    """Norms on queries and keys: none, over each head, or over all heads together."""
    qk_names: tuple[str, str] = ("q_norm", "k_norm")
    qkv_bias: bool | str = "attention_bias"
    out_bias: bool | str = "attention_bias"
    mlp_bias: bool | str = "mlp_bias"
    head_bias: bool | str = False
    gated: bool = True
    up: str = "up_proj"
    """The two projections of an MLP without a gate."""
    down: str = "down_proj"
    fused: Literal["", "mlp", "all"] = ""
    """Which projections are one: gate and up, or these and those to queries, keys and values."""
    activation: str = ""
    """The one key that names the activation, where others do not count."""
    parallel: bool = False
    """Whether attention and MLP stand beside each other behind one norm."""
    full_every: int | str = 0
    """Every so many-th layer attends to everything, the others within the window, where no ``layer_types`` say so."""
    lists_layers: bool = False
    """Whether the config class writes ``layer_types`` by that."""
    experts: Experts | None = None
    code: Code = Code()

    def architecture(self, name: str) -> Architecture:
        """The architecture of this row, which stands under this name."""
        values = {**defaults(self.like or name), **self.own}
        return Architecture(
            name=name,
            required=self.required,
            defaults=values,
            shape=functools.partial(shape, self),
            tensors=functools.partial(tensors, self),
            normalised=functools.partial(_listed, self, values) if self.lists_layers else None,
            code=self.code,
        )


@frozen
class Like:
    """Another architecture's shapes and tensors, with defaults of the type's own class."""

    about: str
    of: str
    """The module that has them."""
    own: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    """What that module's ``tensors`` is told beside the config."""
    notes: tuple[str, ...] | None = None
    """What the tensors leave out; the same as that module's where nothing is said."""
    code: Code = Code()

    def architecture(self, name: str) -> Architecture:
        """The architecture of this row, which stands under this name."""
        made = of_module(import_module(f"lintfit.catalog.architectures.{self.of}"), name)
        told = functools.partial(made.tensors, **self.more)
        notes = made.notes if self.notes is None else self.notes
        return replace(made, defaults={**defaults(name), **self.own}, tensors=told, notes=notes, code=self.code)


def shape(row: Plain, config: Config) -> Shape:
    """The numbers of a config."""
    numbers = decoder_shape(config, norm=row.norm, gated=row.gated, qk_norm=bool(row.qk_norm))
    numbers = replace(numbers, parallel_residual=row.parallel)
    if row.activation:
        numbers = replace(numbers, activation=config.text(row.activation))
    if row.experts is not None:
        numbers = replace(numbers, moe=moe_of(config, numbers, *row.experts.keys))
    if row.full_every and numbers.sliding_window and not config.strings("layer_types"):
        every = _every(row, config)
        return replace(numbers, sliding_layers=numbers.layers - numbers.layers // every if every else 0)
    return numbers


def moe_of(config: Config, numbers: Shape, *keys: str) -> MoE:
    """Experts in every layer, as wide as the MLP of the config."""
    return MoE(
        experts=config.size(*keys, kind="experts"),
        top_k=config.size("num_experts_per_tok", kind="experts"),
        intermediate=numbers.intermediate,
        layers=numbers.layers,
    )


def _every(row: Plain, config: Config) -> int:
    if isinstance(row.full_every, int):
        return row.full_every
    return config.count(row.full_every, f"_{row.full_every}", kind="layers")


def _listed(row: Plain, values: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config with ``layer_types``, as the class's ``__post_init__`` fills them in."""
    stated, key = {**values, **given}, row.full_every
    every = key if isinstance(key, int) else given.get(key, given.get(f"_{key}", values.get(key)))
    return _sliding.named(given, stated.get("num_hidden_layers"), every) if stated.get("sliding_window") else given


def tensors(row: Plain, config: Config) -> tuple[Tensor, ...]:
    """Every parameter tensor of a config."""
    numbers = shape(row, config)
    style = _style(row, config, numbers)
    if row.fused == "all":
        return fused_decoder(numbers, style)
    layers = [*self_attention(numbers, style), *_mlp(row, numbers, style), *layer_norms(numbers, style)]
    found = around(numbers, style, layers)
    return (
        (*found, Tensor("lm_head.bias", (numbers.vocab,), 1, "bias", "head")) if _is(row.head_bias, config) else found
    )


def _style(row: Plain, config: Config, numbers: Shape) -> DecoderStyle:
    sizes = {"": None, "head": (numbers.head_dim, numbers.head_dim), "all": (numbers.query, numbers.key_value)}
    return DecoderStyle(
        qkv_bias=_is(row.qkv_bias, config),
        out_bias=_is(row.out_bias, config),
        mlp_bias=_is(row.mlp_bias, config),
        norm_bias=row.norm_bias,
        norm_weight=row.norm_weight,
        layer_norms=row.layer_norms,
        qk_norm=sizes[row.qk_norm],
        qk_names=row.qk_names,
    )


def _is(stated: bool | str, config: Config) -> bool:
    return stated if isinstance(stated, bool) else config.flag(stated)


def _mlp(row: Plain, numbers: Shape, style: DecoderStyle) -> list[Tensor]:
    layer, hidden, width, layers = "model.layers.{}", numbers.hidden, numbers.intermediate, numbers.layers
    if row.experts is not None:
        assert numbers.moe is not None
        return [
            *router(f"{layer}.{row.experts.gate}", numbers.moe.experts, hidden, layers),
            *fused_experts(f"{layer}.{row.experts.name}", numbers.moe.experts, hidden, width, layers),
        ]
    if not row.gated:
        return plain_mlp(f"{layer}.mlp", hidden, width, layers, up=row.up, down=row.down, bias=style.mlp_bias)
    if not row.fused:
        return gated_mlp(f"{layer}.mlp", hidden, width, layers, bias=style.mlp_bias)
    return [
        *linear(f"{layer}.mlp.gate_up_proj", 2 * width, hidden, layers),
        *linear(f"{layer}.mlp.down_proj", hidden, width, layers),
    ]
