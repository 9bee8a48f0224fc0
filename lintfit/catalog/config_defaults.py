"""What transformers' config classes take for keys that a ``config.json`` leaves out.

The data file is written by ``tools/update_architectures.py``, which says what stands in it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data" / "config_defaults.json"


@functools.cache
def _lines() -> Mapping[str, str]:
    """Rows by model type, as JSON with what follows it. A row is a line: only those asked for are parsed."""
    lines = DATA.read_text(encoding="utf-8").split('\n  "')[1:]
    return {name: row for name, _, row in (line.partition('": ') for line in lines)}


def types() -> tuple[str, ...]:
    """The model types of the file, with underscores."""
    return tuple(_lines())


def defaults(model_type: str, **own: Any) -> Mapping[str, Any]:
    """The defaults of a model type (with underscores), and over them what its class does not declare."""
    found: dict[str, Any] = json.JSONDecoder().raw_decode(_lines()[model_type])[0]
    return {**found, **own}
