"""What transformers' config classes take for keys that a ``config.json`` leaves out.

The data file is written by ``tools/update_architectures.py``, which says what stands in it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lintfit.resources import packaged

DATA = Path(__file__).parent / "data" / "config_defaults.json"


@functools.cache
def _text() -> str:
    return packaged(DATA)


def types() -> tuple[str, ...]:
    """The model types of the file, with underscores, and the configs inside theirs: ``qwen2_vl.vision_config``."""
    return tuple(json.loads(_text())["defaults"])


def defaults(model_type: str, **own: Any) -> Mapping[str, Any]:
    """The defaults of a model type (with underscores), and over them what its class does not declare.

    ``qwen2_vl.vision_config`` is the config inside its own. A type is a line of the file: only this one is parsed.
    """
    mark = f'\n  "{model_type}": '
    found: dict[str, Any] = json.JSONDecoder().raw_decode(_text(), _text().index(mark) + len(mark))[0]
    return {**found, **own}
