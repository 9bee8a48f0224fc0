"""Checkpoints that are quantised: what their ``config.json`` says of it, or what the conventions of their names say.

Such a checkpoint is loaded as it is stored, without a word in the script (transformers
``quantizers/auto.py:get_hf_quantizer``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from lintfit.catalog.facts import Stored
from lintfit.documents.patterns import lazy_pattern

_BITSANDBYTES = lazy_pattern(r"-(?:(unsloth)-)?bnb-([48])-?bits?$")
_GPTQ = lazy_pattern(r"gptq(?:model)?[-_]?(?:int)?([48])(?:[-_]?bits?)?\b|\b(?:int)?([48])(?:[-_]?bits?)?[-_]gptq")
_FIRST_QWEN = lazy_pattern(r"qwen-[\d_]+b(?:-chat)?-int([48])$")
"""Qwen's first generation says ``Int4`` alone: GPTQ with groups of 128 (its README and ``run_gptq.py``)."""
_KIND = lazy_pattern(
    r"(?:^|[-_.])(awq|gptq|gptqmodel|aqlm|autoround|eetq|exl2|exl3|fp8|gguf|ggml|hqq|mxfp4|nvfp4|quip|w\d+a\d+)(?=$|[-_.])"
)
_BITS = lazy_pattern(r"[-_](?:int([48])|([48])-?bits?)$")
_WORD = lazy_pattern(r"[\w.-]{1,40}")
_RELEASED = frozenset({"fp8", "mxfp4", "mxfp8"})
"""What some models are released in (DeepSeek-V3, gpt-oss): a training loads them with ``dequantize``, or converted."""


def of_checkpoint(config: Mapping[str, Any], name: str) -> Stored | None:
    """How a checkpoint is quantised: by its config, and by its name where that says nothing of it."""
    return by_config(config) if quantization_section(config) else by_name(name)


def by_name(model: str) -> Stored | None:
    """How the weights are stored by the last part of a model's name; None where that does not say so.

    Unsloth's ``-bnb-4bit`` are nf4 with double quantisation (``bnb_4bit_use_double_quant`` in ``config.json``), its
    ``-unsloth-bnb-4bit`` besides leave modules in 16 bits. ``-GPTQ-Int4`` are groups of 128 (Qwen, AutoGPTQ). ``-GPTQ``
    alone does not tell the bits, which differ by the branch of a repository.
    """
    name = model.strip().rstrip("/").replace("\\", "/").rpartition("/")[2].lower()
    if found := _BITSANDBYTES.search(name):
        method: Any = "nf4-double" if found[2] == "4" else "int8"
        return Stored(f"bitsandbytes {found[2]}-bit", method, partly=found[1] is not None)
    if found := _GPTQ.search(name) or _FIRST_QWEN.search(name):
        bits = next(filter(None, found.groups()))
        return Stored(f"GPTQ {bits}-bit", "gptq-int4" if bits == "4" else "gptq-int8")
    if found := _KIND.search(name):
        return Stored("GPTQ" if found[1] == "gptqmodel" else found[1].upper())
    if found := _BITS.search(name):
        return Stored(f"{found[1] or found[2]}-bit")
    return None


def by_config(config: Mapping[str, Any]) -> Stored | None:
    """How the weights are stored by a ``config.json``; None where it says nothing that counts for training."""
    section = quantization_section(config)
    method = section.get("quant_method")
    kind = method if isinstance(method, str) and _WORD.fullmatch(method) else "quantized"
    if not section or kind in _RELEASED or section.get("dequantize") is True:
        return None
    skipped = _skipped(section)
    if section.get("load_in_4bit") is True:
        double = section.get("bnb_4bit_use_double_quant") is True
        return Stored("bitsandbytes 4-bit", "nf4-double" if double else "nf4", skipped)
    if section.get("load_in_8bit") is True:
        return Stored("bitsandbytes 8-bit", "int8", skipped)
    bits = section.get("bits")
    if kind == "gptq" and bits in (4, 8):
        return Stored(f"GPTQ {bits}-bit", "gptq-int4" if bits == 4 else "gptq-int8", skipped)
    return Stored(kind.upper() if kind is method else kind, None, skipped)


def quantization_section(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The ``quantization_config`` of a ``config.json``, or of its text part; empty where there is none."""
    for part in (config, config.get("text_config")):
        section = part.get("quantization_config") if isinstance(part, Mapping) else None
        if isinstance(section, Mapping):
            return section
    return {}


def _skipped(section: Mapping[str, Any]) -> tuple[str, ...] | None:
    named = section.get("llm_int8_skip_modules", section.get("modules_to_not_convert"))
    return tuple(part for part in named if isinstance(part, str)) if isinstance(named, list) else None


def skips(patterns: tuple[str, ...], module: str) -> bool:
    """Whether a module is left as it is: by a prefix, an expression or a suffix (``should_convert_module``).

    Vision-language models were published under names that transformers has since moved below ``model``.
    """
    moved = module.replace("model.language_model.", "model.", 1).replace("model.visual.", "visual.", 1)
    older = module.replace("model.language_model.", "language_model.model.", 1).removeprefix("model.")
    return any(_matches(pattern, name) for pattern in patterns for name in {module, moved, older})


def _matches(pattern: str, name: str) -> bool:
    if name.endswith(pattern):
        return True
    try:
        return re.match(rf"(?:{pattern})(?:(?<=\.)|(?=\.|$))", name) is not None
    except re.error:
        return False


_PUBLISHED = {
    "openai/gpt-oss-20b": "mxfp4",
    "openai/gpt-oss-120b": "mxfp4",
    "deepseek-ai/deepseek-v3": "fp8",
    "deepseek-ai/deepseek-v3-0324": "fp8",
    "deepseek-ai/deepseek-r1": "fp8",
    "deepseek-ai/deepseek-r1-0528": "fp8",
}
"""``quant_method`` of the ``config.json`` of models that are released quantised under a name that does not say so."""


def quant_method(config: Mapping[str, Any], name: str) -> str | None:
    """The method that a checkpoint is stored in, as ``quant_method`` says it (``awq``, ``gptq``, ``mxfp4``).

    Of the config, else of the name, whose conventions leave open which of several methods an ``fp8`` is.
    """
    section = quantization_section(config)
    if section:
        method = section.get("quant_method")
        if isinstance(method, str):
            return method.lower()
        return "bitsandbytes" if section.get("load_in_4bit") is True or section.get("load_in_8bit") is True else None
    stored = by_name(name)
    return _PUBLISHED.get(name.lower()) if stored is None else stored.kind.partition(" ")[0].lower()


_LOADED_WHOLE = frozenset({"fp8", "mxfp4"})
"""Ways in which checkpoints are stored that are trained in others: ``from_pretrained`` makes no ``zero.Init`` for what
has a quantizer (4.57 ``modeling_utils.py:get_init_context``), and the engine moves the model as it is to the GPU."""


@cache
def loaded_whole(name: str) -> bool:
    """Whether transformers loads a published model on every rank as a whole under ZeRO-3, though it trains in 16 bits:
    its checkpoint is quantised."""
    return quant_method({}, name) in _LOADED_WHOLE
