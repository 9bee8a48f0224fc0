"""Architectures by their ``model_type``: plain ones are rows of a table, any other is a module of its own.

Language models have their table in ``_table.py``, multimodal ones in the modules of ``FAMILIES``. A module is named
after the ``model_type`` of the ``config.json``. It has a ``ROW`` with functions for the parts that are its own, or else
``DEFAULTS`` (what transformers takes for keys that a config leaves out, see :mod:`..config_defaults`), ``REQUIRED``
(keys that a config must state itself), ``shape(config) -> Shape`` and ``tensors(config) -> tuple[Tensor, ...]``. An
optional ``CODE`` says what libraries' code has for the type, an optional ``normalised(values)`` renames older spellings
before anything else reads them, an optional ``NOTES`` says what the tensors leave out, and an optional
``language(config)`` gives ``model_type`` and config of a model's language model. Parameter names and shapes are those
of transformers 5.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lintfit.catalog.facts import Code
from lintfit.frozen import replace

if TYPE_CHECKING:
    from lintfit.catalog.architectures._architecture import Architecture

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

INSIDE: Mapping[tuple[str, str], str] = {("qwen", "visual"): "qwenvl"}
"""Architectures whose config states the ``model_type`` of another, by that and the key of a part that it has more."""

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "_gemma4": ("gemma4", "gemma4_unified"),
    "_glm_v": ("glm46v", "glm4v", "glm4v_moe", "glm_ocr"),
    "_multimodal_table": (
        "aya_vision",
        "cohere2_vision",
        "deepseek_vl",
        "gemma3",
        "idefics3",
        "internvl",
        "lighton_ocr",
        "llava",
        "llava_next",
        "llava_next_video",
        "llava_onevision",
        "mistral3",
        "paligemma",
        "smolvlm",
        "video_llava",
        "vipllava",
    ),
    "_qformer": ("blip_2", "instructblip"),
    "_qwen_omni": ("qwen2_5_omni_thinker", "qwen3_omni_moe_thinker"),
    "_qwen_vl": ("exaone4_5", "qwen2_5_vl", "qwen2_vl", "qwen3_5", "qwen3_5_moe", "qwen3_vl", "qwen3_vl_moe"),
}
"""Multimodal architectures whose rows stand together in a module."""

CODE_OF_ALIASES: Mapping[str, Code] = {"ministral": Code(liger=True)}
"""What libraries have for these, whose classes are not the other's."""


def type_of(config: Mapping[str, object]) -> object:
    """The ``model_type`` of a config, by its parts where it states that of its language model."""
    stated = config.get("model_type")
    return next((own for (other, key), own in INSIDE.items() if other == stated and config.get(key)), stated)


@functools.cache
def find(model_type: str) -> Architecture | None:
    """An architecture, or None where lintfit does not know it. Nothing is loaded but its own module, or the table."""
    if model_type in ALIASES:
        found = find(ALIASES[model_type])
        assert found is not None
        return replace(found, code=CODE_OF_ALIASES.get(model_type, Code()))
    name = model_type.replace("-", "_").replace(".", "_")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        return None
    full = f"{__name__}.{name}"
    if importlib.util.find_spec(full):
        from lintfit.catalog.architectures._architecture import of_module

        return of_module(importlib.import_module(full), name)
    family = next((module for module, types in FAMILIES.items() if name in types), "_table")
    rows = importlib.import_module(f"{__name__}.{family}").ROWS
    return rows[name].architecture(name) if name in rows else None


def known(model_type: str) -> Architecture:
    """An architecture that lintfit has."""
    found = find(model_type)
    assert found is not None
    return found


@functools.cache
def names() -> tuple[str, ...]:
    """Every architecture, by its ``model_type`` with underscores."""
    from lintfit.catalog.architectures._table import ROWS

    modules = (module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    return tuple(sorted({*modules, *ROWS, *(name for types in FAMILIES.values() for name in types)}))
