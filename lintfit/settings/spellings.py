"""What people write for a value on a command line where a spec has another word for it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lintfit.settings.kinds import DTYPE, FLAG, TOKENS, Choice, ValueKind
from lintfit.settings.registry import QUANTIZATIONS, SETTINGS

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}
_BITS = {"4bit": "nf4", "4-bit": "nf4", "int4": "nf4", "8bit": "int8", "8-bit": "int8", "none": "null"}
_SWITCHES = {"yes": "true", "on": "true", "1": "true", "no": "false", "off": "false", "0": "false"}
_ATTENTION = dict.fromkeys(("flash", "flash-attention", "flash_attention", "flash2", "fa2"), "flash_attention_2")
_SHARDING = {"fsdp": "FULL_SHARD", "true": "FULL_SHARD"}

_THOUSANDS = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)k")
"""``4k`` tokens, as models' names have it: 4096."""


def takes_no_value(name: str) -> bool:
    """Whether a flag alone says something: that its setting is on."""
    kind = SETTINGS[name].kind
    return kind is FLAG or (isinstance(kind, Choice) and any(value is True for value in kind.values))


def is_switch(text: str) -> bool:
    """Whether a word is a value of a flag that takes none."""
    return text.lower() in {*_SWITCHES, "true", "false", "selective"}


def spelled(name: str, text: str) -> str:
    """A flag's text as a spec's key takes it; what is no other spelling stays as it is."""
    lowered = text.strip().lower()
    kind = SETTINGS[name].kind
    if kind == TOKENS and (thousands := _THOUSANDS.fullmatch(lowered)):
        return str(round(float(thousands[1]) * 1024))
    return _words(name, kind).get(lowered, text)


def _words(name: str, kind: ValueKind) -> Mapping[str, str]:
    if takes_no_value(name):
        return _SWITCHES
    if name == "attention":
        return _ATTENTION
    if name == "fsdp":
        return _SHARDING
    if kind == QUANTIZATIONS:
        return _BITS
    return _DTYPES if kind == DTYPE or name == "mixed_precision" else {}
