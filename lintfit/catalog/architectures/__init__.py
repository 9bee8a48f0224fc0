"""Architectures: one module per family, found by its name, which is the ``model_type`` of its ``config.json``.

A module has ``DEFAULTS`` (what transformers takes for keys that a config leaves out), ``REQUIRED`` (keys that a
config must state itself), ``shape(config) -> Shape`` and ``tensors(config) -> tuple[Tensor, ...]``. Parameter names
and shapes are those of transformers 5. An optional ``normalised(values)`` renames older spellings before anything
else reads them, an optional ``NOTES`` says what the tensors leave out, and an optional ``language(config)`` gives
``model_type`` and config of a vision-language model's language model.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Mapping
from types import ModuleType

ALIASES: Mapping[str, str] = {
    "RefinedWeb": "falcon",
    "RefinedWebModel": "falcon",
    "Yi": "llama",
    "aquila": "llama",
    "camembert": "roberta",
    "code_llama": "llama",
    "iquestcoder": "llama",
    "ministral": "mistral",
    "kimi_k2": "deepseek_v3",
    "phi4mm": "phi4_multimodal",
    "qwen2_5_omni": "qwen2_5_omni_thinker",
    "qwen3_omni_moe": "qwen3_omni_moe_thinker",
    "xlm-roberta": "roberta",
}
"""``model_type`` values whose architecture is another's, key for key."""


def find(model_type: str) -> ModuleType | None:
    """The module of an architecture, or None where lintfit does not know it."""
    name = ALIASES.get(model_type, model_type).replace("-", "_").replace(".", "_")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        return None
    full = f"{__name__}.{name}"
    return importlib.import_module(full) if importlib.util.find_spec(full) else None


def names() -> tuple[str, ...]:
    """Every architecture, by its ``model_type`` with underscores."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")))
