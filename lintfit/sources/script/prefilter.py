"""Whether a Python file is worth parsing: two searches over its text, no import of a parser."""

from __future__ import annotations

import re

_LIBRARY = re.compile(r"\b(?:torch|transformers|trl|peft|deepspeed|accelerate|lightning|pytorch_lightning|unsloth)\b")
_TRAINS = re.compile(
    r"Trainer\b|\bTrainingArguments\b|\.backward\(|\bdeepspeed\.initialize\b|\bAccelerator\(|\bFabric\(|\bHfArgumentParser\b"
)
_TEST_FILE = re.compile(r"test_\w*\.py|\w+_tests?\.py|conftest\.py")
_TEST = re.compile(r"^\s*(?:async )?def test_|^\s*@pytest\.fixture|^class \w*Test", re.MULTILINE)


def maybe_training_script(text: str) -> bool:
    """Whether a script names a training library and something that trains."""
    return _LIBRARY.search(text) is not None and _TRAINS.search(text) is not None


def is_test(name: str, text: str) -> bool:
    """Whether a file holds tests for pytest or unittest, by its name and its content: what it trains is no run."""
    return _TEST_FILE.fullmatch(name) is not None and _TEST.search(text) is not None
