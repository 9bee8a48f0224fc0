"""What the catalogue asks of an architecture, whether a module of its own or a row of the table has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Code, Tensor
from lintfit.frozen import frozen


@frozen
class Architecture:
    """An architecture by its ``model_type`` with underscores."""

    name: str
    required: tuple[str, ...]
    """Keys that a config must state itself."""
    defaults: Mapping[str, Any]
    """What transformers takes for keys that a config leaves out."""
    shape: Callable[[Config], Shape]
    tensors: Callable[[Config], tuple[Tensor, ...]]
    normalised: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    """Renames older spellings, and fills in what the class works out, before anything else reads a config."""
    language: Callable[[Config], tuple[str, Config]] | None = None
    """``model_type`` and config of a vision-language model's language model."""
    notes: tuple[str, ...] = ()
    """What the tensors leave out."""
    code: Code = Code()


def of_module(module: ModuleType, name: str) -> Architecture:
    """The architecture that a module writes out, or has as a row of its own."""
    stated = vars(module)
    if "ROW" in stated:
        row: Architecture = stated["ROW"].architecture(name)
        return row
    return Architecture(
        name=name,
        required=stated["REQUIRED"],
        defaults=stated.get("DEFAULTS", {}),
        shape=stated["shape"],
        tensors=stated["tensors"],
        normalised=stated.get("normalised"),
        language=stated.get("language"),
        notes=tuple(stated.get("NOTES", ())),
        code=stated.get("CODE", Code()),
    )
