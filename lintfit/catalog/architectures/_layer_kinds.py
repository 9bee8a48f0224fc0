"""Kinds of layers, listed one by one where a config does not, as transformers' ``__post_init__`` fill them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from lintfit.catalog.config import LARGEST

FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"

Given = Mapping[str, Any]


def counted(layers: Any) -> TypeGuard[int]:
    """Whether this is a number of layers."""
    return type(layers) is int and 0 < layers <= LARGEST["layers"]


def listed(given: Given, kinds: Sequence[str] | None, key: str = "layer_types") -> Given:
    """A config with the kinds of its layers; as it is where it names them itself, or where they are not known."""
    return given if given.get(key) is not None or kinds is None else {**given, key: [*kinds]}


def sliding(given: Given, layers: Any, every: Any, *, first: bool = False) -> Given:
    """Every ``every``-th layer attends to everything, the others within the window.

    ``first``: whether the first of so many does, not the last. As it is where the numbers are none.
    """
    if not counted(layers) or not counted(every):
        return given
    start = 0 if first else 1
    return listed(given, [SLIDING if (index + start) % every else FULL for index in range(layers)])
