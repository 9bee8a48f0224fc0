"""The kinds of values that settings have: data, from which readers, flags and the reference page are made."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from lintfit.frozen import field, frozen

LARGEST_COUNT = 2**20
"""GPUs, sequences and steps: far beyond any run; below it numbers are taken as meant."""
LARGEST_SEQUENCE = 2**27
"""Tokens: far beyond any published context."""


class Word(Enum):
    """Kinds that need no more than a word."""

    FLAG = "true or false"
    TARGETS = 'modules that get adapters: a list of names, "all-linear", or null for the model type\'s usual ones'
    OPTIMIZER = "an optimizer by transformers' name; a name that nobody knows is an optimizer of the script's own"
    VERSIONS = "versions of packages by name"
    NAMED = "a model, a GPU, or several: the catalogue knows which there are"
    OF_FILES = "what only files state, whose readers give the value; no spec has it"


FLAG, TARGETS, OPTIMIZER, VERSIONS, NAMED, OF_FILES = Word


@frozen
class Count:
    """A whole number of things, both ends included."""

    least: int = 1
    most: int = LARGEST_COUNT


@frozen
class Amount:
    """A number from ``least``, or above it (``exclusive``), to ``most``."""

    least: float = 0.0
    most: float = float("inf")
    exclusive: bool = False


@frozen
class Choice:
    """One of a few values; None among them says that the key may be null."""

    values: tuple[Any, ...]


@frozen
class Names:
    """A list of names; of ``among`` where that is not empty."""

    among: tuple[str, ...] = ()


@frozen
class Object:
    """A JSON object; with ``parts`` one of these keys, each of its kind, and null where ``nullable``.

    ``defaults``: what the parts are that are not stated; one without has to be, or is worked out.
    """

    parts: Mapping[str, ValueKind] | None = None
    nullable: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)


ValueKind = Word | Count | Amount | Choice | Names | Object

DTYPE = Choice(("fp32", "bf16", "fp16"))
DEVICE = Choice(("none", "cpu", "nvme"))
TOKENS = Count(most=LARGEST_SEQUENCE)

_WORDS: Mapping[Word, str] = {FLAG: "BOOL", TARGETS: "NAMES", OPTIMIZER: "NAME", VERSIONS: "NAMES", NAMED: "ID"}
_SHAPES: Mapping[type, str] = {Count: "N", Amount: "NUMBER", Choice: "NAME", Names: "NAMES", Object: "JSON"}


def metavar(kind: ValueKind) -> str:
    """What stands for a value of this kind in a command's help."""
    if isinstance(kind, Word):
        return _WORDS.get(kind, "")
    if kind == DTYPE:
        return "DTYPE"
    return "DEVICE" if kind == DEVICE else _SHAPES[type(kind)]


def nullable(kind: ValueKind) -> bool:
    """Whether a spec may have null for a key of this kind."""
    if isinstance(kind, Choice):
        return None in kind.values
    return kind is TARGETS or (isinstance(kind, Object) and kind.nullable)


def is_list(kind: ValueKind) -> bool:
    """Whether a value may be several names, which a flag has with commas between them."""
    return kind is TARGETS or isinstance(kind, Names)


def in_words(kind: ValueKind) -> str:
    """What a value of this kind may be, as the reference page says it in Markdown."""
    match kind:
        case Word.FLAG:
            return "`true`, `false`"
        case Word.TARGETS:
            return 'a list of module names, or `"all-linear"`'
        case Count():
            return f"{kind.least} and up"
        case Amount():
            start = f"above {kind.least:g}" if kind.exclusive else f"{kind.least:g}"
            return f"{start} and up" if kind.most == float("inf") else f"{start} to {kind.most:g}"
        case Choice():
            return ", ".join(f"`{_spelled(value)}`" for value in kind.values)
        case Names():
            return f"a list of {', '.join(f'`{name}`' for name in kind.among)}" if kind.among else _NAMES
    return ""


_NAMES = "a list of module names"


def _spelled(value: object) -> str:
    """A value as JSON has it; words without their quotes."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
