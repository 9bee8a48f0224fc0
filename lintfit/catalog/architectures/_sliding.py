"""Layers that slide but for every so many-th, named one by one where a config does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.config import LARGEST


def named(given: Mapping[str, Any], layers: Any, every: Any) -> Mapping[str, Any]:
    """A config with ``layer_types``: every ``every``-th layer attends to everything, as transformers' configs fill in.

    As it is where it names them itself, or where the numbers are none.
    """
    counted = all(type(count) is int and 0 < count <= LARGEST["layers"] for count in (layers, every))
    if given.get("layer_types") is not None or not counted:
        return given
    kinds = ["sliding_attention" if (index + 1) % every else "full_attention" for index in range(layers)]
    return {**given, "layer_types": kinds}
