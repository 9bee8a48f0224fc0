"""Whether a Python file is worth parsing: two searches over its text, no import of a parser."""

from __future__ import annotations

import re

_LIBRARY = re.compile(r"\b(?:torch|transformers|trl|peft|deepspeed|accelerate|lightning|pytorch_lightning|unsloth)\b")
_TRAINS = re.compile(
    r"Trainer\b|\bTrainingArguments\b|\.backward\(|\bdeepspeed\.initialize\b|\bAccelerator\(|\bFabric\(|\bHfArgumentParser\b"
)


def maybe_training_script(text: str) -> bool:
    """Whether a script names a training library and something that trains."""
    return _LIBRARY.search(text) is not None and _TRAINS.search(text) is not None
