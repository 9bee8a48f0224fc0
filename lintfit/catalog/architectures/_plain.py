"""A decoder as one row, with llama's layers or parts of its own, or another architecture by its own name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Literal

from lintfit.catalog.architectures import _layer_kinds
from lintfit.catalog.architectures._architecture import Architecture, of_module
from lintfit.catalog.architectures._blocks import Norm, Shape, decoder_shape, embedding, head, linear, masked_head, norm
from lintfit.catalog.architectures._decoder import KEYS, Names
from lintfit.catalog.architectures._experts import Experts, moe_of, routed
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor
from lintfit.frozen import field, frozen, replace

Given = Mapping[str, Any]
"""The keys of a config as it states them."""

Part = Callable[[Config, Shape], list[Tensor]]
"""Parameters of a config with these numbers."""


@frozen
class Plain:
    """Where a type differs from llama. A bias is there, is not, or the key of a config says so."""

    about: str
    own: Given = field(default_factory=dict)
    """Defaults that transformers' class does not declare, or code of the type's own repository."""
    like: str = ""
    """The type whose defaults lie under these; its own where nothing is said."""
    required: tuple[str, ...] = KEYS
    """Keys that a config must state itself."""
    normalised: Callable[[Given], Given] | None = None
    """Renames older spellings, and fills in what the class works out, before anything else reads a config."""
    renamed: Given = field(default_factory=dict)
    """Other spellings of keys, which count where the usual ones are not there."""
    fixed: Given = field(default_factory=dict)
    """What the class takes whatever a config says."""
    numbers: Callable[[Config], Shape] | None = None
    """Reads the numbers of a config that is not read as llama's, with those of experts or without."""
    names: Names = Names()
    norm: Norm = "rmsnorm"
    norm_bias: bool | str = False
    norm_weight: bool = True
    qk_norm: Literal["", "head", "all", "each"] = ""
    """Norms on queries and keys: none, over each head, over all heads together, over each with a scale of its own."""
    qk_norm_key: str = ""
    """The key that says whether there are such norms."""
    bias: bool | str | None = None
    """Of all linear layers but the head, where these say nothing of their own."""
    qkv_bias: bool | str | None = None
    """``attention_bias`` where nothing is said, like the next."""
    out_bias: bool | str | None = None
    mlp_bias: bool | str | None = None
    """``mlp_bias`` where nothing is said."""
    head_bias: bool | str = False
    gated: bool = True
    input_first: bool = False
    """Whether linear layers store their weights as (in, out), like GPT-2's ``Conv1D``."""
    activation: str = ""
    """The one key that names the activation, where others do not count."""
    rotary_key: str = ""
    """The key that counts the elements of a head that rotary embedding is applied to, where a config has it."""
    parallel: bool | str = False
    """Whether attention and MLP stand beside each other."""
    full_every: int | str = 0
    """Every so many-th layer attends to everything, the others within the window, where no ``layer_types`` say so."""
    full_first: bool = False
    """Whether the first of every so many layers is the one, not the last."""
    lists_layers: bool = False
    """Whether the config class writes ``layer_types`` by that."""
    width_key: str = ""
    """The key of the width of embeddings, where that may differ from the stream's."""
    experts: Experts | None = None
    head: Part | None = None
    """What is in the place of the head."""
    mixer: Part | None = None
    """What mixes tokens, norms on queries and keys included, where it is not attention as in llama in every layer."""
    mlp: Part | None = None
    """What is in the MLP's place."""
    more: tuple[Part, ...] = ()
    """What layers have beside attention, MLP and norms; it stands behind all else where ``order`` does not name it."""
    notes: tuple[str, ...] = ()
    """What the tensors leave out."""
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
            normalised=self.normalised or self._normalised(values),
            notes=self.notes,
            code=self.code,
        )

    def _normalised(self, values: Given) -> Callable[[Given], Given] | None:
        if self.lists_layers:
            return functools.partial(_listed, self, values)
        return functools.partial(_renamed, self) if self.renamed or self.fixed else None


CLASSIC = Plain(
    "GPT-2's and BERT's: LayerNorm, an MLP without a gate, and biases everywhere but in the head",
    norm="layernorm",
    norm_bias=True,
    bias=True,
    gated=False,
)


@frozen
class Like:
    """Another architecture's shapes and tensors, with defaults of the type's own class."""

    about: str
    of: str
    """The module that has them."""
    own: Given = field(default_factory=dict)
    more: Given = field(default_factory=dict)
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
    if row.numbers is not None:
        numbers = row.numbers(config)
    else:
        qk_norm = bool(row.qk_norm) and (not row.qk_norm_key or config.flag(row.qk_norm_key))
        numbers = decoder_shape(config, norm=row.norm, gated=row.gated, qk_norm=qk_norm)
    if row.parallel:
        numbers = replace(numbers, parallel_residual=_is(row.parallel, config))
    if row.activation:
        numbers = replace(numbers, activation=config.text(row.activation))
    if row.rotary_key:
        rotary = config.size(row.rotary_key, kind="head_dim", default=numbers.rotary_dim or numbers.head_dim)
        numbers = replace(numbers, rotary_dim=rotary)
    if row.experts is not None and numbers.moe is None:
        moe = moe_of(row.experts, config, numbers)
        numbers = replace(numbers, moe=moe if moe.layers or not row.experts.optional else None)
    if row.full_every and numbers.sliding_window and not config.strings("layer_types"):
        every = _every(row, config)
        return replace(numbers, sliding_layers=numbers.layers - numbers.layers // every if every else 0)
    return numbers


def _every(row: Plain, config: Config) -> int:
    if isinstance(row.full_every, int):
        return row.full_every
    return config.count(row.full_every, f"_{row.full_every}", kind="layers")


def _listed(row: Plain, values: Given, given: Given) -> Given:
    """A config with ``layer_types``, as the class's ``__post_init__`` fills them in."""
    stated, key = {**values, **given}, row.full_every
    every = key if isinstance(key, int) else given.get(key, given.get(f"_{key}", values.get(key)))
    layers = stated.get("num_hidden_layers")
    return _layer_kinds.sliding(given, layers, every, first=row.full_first) if stated.get("sliding_window") else given


def _renamed(row: Plain, given: Given) -> Given:
    spelled = {new: given[old] for old, new in row.renamed.items() if given.get(old) is not None}
    return {**spelled, **given, **row.fixed}


def tensors(row: Plain, config: Config) -> tuple[Tensor, ...]:
    """Every parameter tensor of a config."""
    return decoder(row, config, shape(row, config))


def decoder(row: Plain, config: Config, numbers: Shape) -> tuple[Tensor, ...]:
    """Every parameter tensor of a config with these numbers."""
    final, bias = row.names.final if row.norm_weight else "", _is(row.norm_bias, config)
    return (
        *_embeddings(row, config, numbers),
        *_layers(row, config, numbers),
        *(norm(final, numbers.hidden, bias=bias, where="final") if final else ()),
        *(row.head or functools.partial(_head, row))(config, numbers),
        *(() if "more" in row.names.order else _more(row, config, numbers)),
    )


def _width(row: Plain, config: Config, numbers: Shape) -> int:
    return config.size(row.width_key, kind="hidden") if row.width_key else numbers.hidden


def _embeddings(row: Plain, config: Config, numbers: Shape) -> list[Tensor]:
    names, width = row.names, _width(row, config, numbers)
    found = embedding(names.embedding, numbers.vocab, width)
    if names.positions:
        found += embedding(names.positions, (numbers.max_positions or 0) + names.offset, width)
    if names.token_types:
        found += embedding(names.token_types, config.size("type_vocab_size"), width)
    if names.embedding_norm:
        found += norm(names.embedding_norm, width, bias=_is(row.norm_bias, config), where="embedding")
    return found


def _head(row: Plain, config: Config, numbers: Shape) -> list[Tensor]:
    if row.names.masked is None:
        return head(numbers, row.names.head, bias=_is(row.head_bias, config))
    return masked_head(row.names.masked, numbers, _width(row, config, numbers))


def _more(row: Plain, config: Config, numbers: Shape) -> list[Tensor]:
    return [tensor for part in row.more for tensor in part(config, numbers)]


def _layers(row: Plain, config: Config, numbers: Shape) -> list[Tensor]:
    parts: dict[str, Part] = {
        "mixer": row.mixer or functools.partial(attention, row),
        "qkv": functools.partial(_qkv, row),
        "out": functools.partial(_out, row),
        "mlp": row.mlp or functools.partial(_mlp, row),
        "qk_norms": functools.partial(_qk_norms, row),
    }
    names, bias = row.names.norms if row.norm_weight else (), _is(row.norm_bias, config)
    norms = [norm(f"{row.names.layer}.{name}", numbers.hidden, numbers.layers, bias=bias) for name in names]
    found: list[Tensor] = []
    for word in row.names.order.split():
        if word == "norms":
            found += [tensor for each in norms for tensor in each]
        elif word == "norm":
            found += norms.pop(0) if norms else []
        elif word == "more":
            found += _more(row, config, numbers)
        else:
            found += parts[word](config, numbers)
    return found


def attention(row: Plain, config: Config, numbers: Shape) -> list[Tensor]:
    """The projections of attention in all layers."""
    return _qkv(row, config, numbers) + _out(row, config, numbers)


def _qkv(row: Plain, config: Config, numbers: Shape) -> list[Tensor]:
    names, wide, narrow = row.names.qkv, numbers.query, numbers.key_value
    widths = (wide, narrow, narrow) if len(names) > 1 else (wide + 2 * narrow,)
    bias, found = _bias(row, row.qkv_bias, config), []
    for name, width in zip(names, widths, strict=True):
        found += _linear(row, name, width, numbers.hidden, numbers.layers, bias)
    return found


def _out(row: Plain, config: Config, numbers: Shape) -> list[Tensor]:
    return _linear(row, row.names.out, numbers.hidden, numbers.query, numbers.layers, _bias(row, row.out_bias, config))


def _qk_norms(row: Plain, config: Config, numbers: Shape) -> list[Tensor]:
    found: list[Tensor] = []
    for name, heads in zip(row.names.qk_norms, (numbers.heads, numbers.kv_heads), strict=True):
        size = {"head": (numbers.head_dim,), "all": (heads * numbers.head_dim,), "each": (heads, numbers.head_dim)}
        bias = _is(row.norm_bias, config)
        one = norm(f"{row.names.layer}.{name}", 1, numbers.layers, bias=bias) if numbers.qk_norm and row.qk_norm else []
        found += [replace(tensor, shape=size[row.qk_norm]) for tensor in one]
    return found


def _mlp(row: Plain, config: Config, numbers: Shape) -> list[Tensor]:
    bias = _bias(row, row.mlp_bias, config, "mlp_bias")
    if row.experts is None or numbers.moe is None:
        return _dense(row, numbers, numbers.layers, bias)
    dense = _dense(row, numbers, numbers.layers - numbers.moe.layers, bias)
    return dense + routed(row.experts, row.names.layer, numbers, bias=bias)


def _dense(row: Plain, numbers: Shape, copies: int, bias: bool) -> list[Tensor]:
    """The MLPs of so many layers, where the type has one."""
    names, hidden, width = row.names, numbers.hidden, numbers.intermediate
    if not names.down:
        return []
    up = names.up if row.gated else names.up[-1:]
    wide = 2 * width if row.gated and len(up) == 1 else width
    found = [tensor for name in up for tensor in _linear(row, name, wide, hidden, copies, bias)]
    return found + _linear(row, names.down, hidden, width, copies, bias)


def _linear(row: Plain, name: str, rows: int, columns: int, copies: int, bias: bool) -> list[Tensor]:
    found = linear(f"{row.names.layer}.{name}", rows, columns, copies, bias=bias)
    return [replace(found[0], shape=(columns, rows)), *found[1:]] if row.input_first else found


def _is(stated: bool | str, config: Config) -> bool:
    return stated if isinstance(stated, bool) else config.flag(stated)


def _bias(row: Plain, stated: bool | str | None, config: Config, usual: str = "attention_bias") -> bool:
    return _is(next((each for each in (stated, row.bias) if each is not None), usual), config)
