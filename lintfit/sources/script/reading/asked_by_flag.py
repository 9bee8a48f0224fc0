"""Flags that ask for a way of training of the script's own (``--hier_tuning``, ``--tune_type_llm mores``), of which
nothing was found in its code: what is trained then is not known."""

from __future__ import annotations

import re

from lintfit.settings.model import UNKNOWN, Provenance, Setting
from lintfit.sources.launchers.flags import Flag
from lintfit.sources.script.reading.collector import Reading

_ASKS = re.compile(
    r"(?:^|_)(?:use|enable|with|train|tune|do)_(?:(?:soft|deep|low|hard)_)?"
    r"(?:adapters?|prefix|prompts?|p_?tuning|q?lora|dora|reft|ia3|bitfit|lisa|hift)$"
    r"|(?:^|_)(?:adapter|bias|hier|hierarchical|layer|layerwise|partial|prefix|prompt|p|delta|side|block)_tuning$"
    r"|(?:^|_)(?:only_train|train_only|trainable)_(?:layers?|part|parts|modules?|head|last|adapters?|bias)"
)
"""Names of switches that leave a part of a model alone."""

_CHOOSES = re.compile(
    r"(?:^|_)(?:tune|tuning|finetuning|fine_tuning|finetune|peft|adapter)_(?:type|method|mode|strategy)"
)
"""Names of flags whose value is a way of training."""

_OF_ALL = re.compile(r"full|all|none|null|no$|false|0$|sft|standard|default|normal|dense", re.IGNORECASE)
"""Words for training all weights, or that say nothing of it."""

_BESIDE = re.compile(r"vis|vit|tower|audio|image|connector|projector|resampler|align", re.IGNORECASE)
"""Parts beside a language model, whose own training leaves that of the language model as it is."""


def read(reading: Reading) -> None:
    """Leave the method open where a flag asks for another way than training all weights."""
    method = reading.settings.get("method")
    if method is None or method.value != "full" or "frozen_modules" in reading.settings:
        return
    for flag in reading.walk.flags.values():
        if _asks(flag):
            why = f"--{flag.name} asks for a way of training that is not read"
            reading.settings["method"] = Setting("method", UNKNOWN, Provenance("file", why, flag.origin))
            return


def _asks(flag: Flag) -> bool:
    if _BESIDE.search(flag.name):
        return False
    if _ASKS.search(flag.name):
        return flag.is_on or (flag.value is not None and flag.value.isidentifier() and not _OF_ALL.match(flag.value))
    return bool(_CHOOSES.search(flag.name) and flag.value and not _OF_ALL.search(flag.value))
