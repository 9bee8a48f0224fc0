"""Checked access to the keys of a ``config.json``: every bad number is one line that names key, value and remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lintfit.errors import LintfitError, shown

LARGEST: Mapping[str, int] = {
    "hidden": 2**20,
    "layers": 1000,
    "heads": 2**16,
    "head_dim": 2**16,
    "intermediate": 2**24,
    "vocab": 2**27,
    "experts": 2**16,
    "looped": 128,
    "positions": 2**31,
    "other": 2**27,
}
"""Upper limits that no published model comes near; beyond them a number is a typing mistake, not a model.

The deepest model of the catalogue has 126 layers, and every layer is told apart for every estimate; Doge has 16,384
experts. ``looped`` are experts that run one after the other, each with products of its own to follow: JetMoE has 8."""


class CatalogError(LintfitError):
    """A model, GPU or config that the catalogue cannot make facts from. The message is one line."""


class UnknownArchitectureError(CatalogError):
    """A config that is in order, of an architecture that lintfit cannot count: a gap of the catalogue, no slip."""


class Config(Mapping[str, Any]):
    """A ``config.json`` with transformers' defaults underneath.

    ``origin`` is how messages name the config. ``given`` are the keys that the file has itself. An explicit
    ``null`` counts as absent, as transformers' ``*Config`` classes derive a value there.
    """

    def __init__(self, given: Mapping[str, Any], defaults: Mapping[str, Any], origin: str) -> None:
        self.given = given
        self.origin = origin
        self._values: dict[str, Any] = {**defaults, **given}

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def error(self, key: str, what: str) -> CatalogError:
        """An error about ``key`` that quotes its value."""
        stated = (
            f"{key} is {shown(self._values[key])}, " if self._values.get(key) is not None else f"{key} is missing, "
        )
        return CatalogError(f"{self.origin}: {stated}{what}")

    def present(self, *keys: str) -> str:
        """The first of ``keys`` that the file gives a value, else that has a default, or the first of all."""
        sources = (self.given, self._values)
        return next((key for values in sources for key in keys if values.get(key) is not None), keys[0])

    def size(self, *keys: str, kind: str = "other", default: int | None = None) -> int:
        """A whole number of at least 1. Several keys are spellings of one setting; the first present counts."""
        key = self.present(*keys)
        value = self._values.get(key)
        if value is None:
            if default is not None:
                return default
            raise self.error(key, f"must be a whole number from 1 to {LARGEST[kind]}")
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST[kind]:
            raise self.error(key, f"must be a whole number from 1 to {LARGEST[kind]}")
        return value

    def count(self, *keys: str, kind: str = "other", default: int = 0) -> int:
        """A whole number that may be 0."""
        key = self.present(*keys)
        if self._values.get(key) in (0, None):
            return default if self._values.get(key) is None else 0
        return self.size(key, kind=kind)

    def flag(self, key: str, default: bool = False) -> bool:
        """A truth value."""
        value = self._values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(key, "must be true or false")
        return value

    def text(self, *keys: str, default: str = "") -> str:
        """A string; ``default`` where it is absent or something else."""
        value = self._values.get(self.present(*keys))
        return value if isinstance(value, str) else default

    def number(self, *keys: str) -> float | None:
        """A number, or None where there is none."""
        value = self._values.get(self.present(*keys))
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def share(self, key: str, default: float) -> float:
        """A number above 0, up to 1; ``default`` where it is absent."""
        value = self._values.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
            raise self.error(key, "must be a number above 0, up to 1")
        return float(value)

    def section(self, key: str) -> Mapping[str, Any]:
        """A nested object; empty where it is absent."""
        value = self._values.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self.error(key, "must be an object")
        return value

    def strings(self, key: str) -> tuple[str, ...]:
        """A list of strings; empty where it is absent."""
        return self._list(key, lambda item: isinstance(item, str), "strings")

    def numbers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers; empty where it is absent."""
        return self._list(key, lambda item: isinstance(item, int), "whole numbers")

    def pairs(self, key: str) -> tuple[tuple[int, int], ...]:
        """A list of pairs of whole numbers, such as heights and widths; empty where it is absent."""
        return tuple((first, second) for first, second in self._list(key, _is_pair, "pairs of whole numbers"))

    def _list(self, key: str, check: Callable[[Any], bool], what: str) -> tuple[Any, ...]:
        value = self._values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list | tuple) or not all(map(check, value)):
            raise self.error(key, f"must be a list of {what}")
        return tuple(value)

    def require(self, keys: tuple[str, ...]) -> None:
        """Raise for the first of ``keys`` that the file itself does not state."""
        for key in keys:
            if self.given.get(key) is None:
                raise CatalogError(f"{self.origin}: {key} is missing; a {self.text('model_type')} config must state it")


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(type(number) is int for number in value)
