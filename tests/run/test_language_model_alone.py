"""What ``AutoModelForCausalLM`` loads of a checkpoint that sees: the language model alone for some types, or all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

SCRIPT = """\
from transformers import {owner}, Trainer, TrainingArguments
model = {owner}.from_pretrained("{name}", dtype="bfloat16")
args = TrainingArguments("out", per_device_train_batch_size=1, gradient_checkpointing=True, bf16=True)
Trainer(model, args).train()
"""


@pytest.mark.parametrize(
    ("owner", "name", "alone"),
    [
        ("AutoModelForCausalLM", "Qwen/Qwen3.5-4B", True),
        ("AutoModelForImageTextToText", "Qwen/Qwen3.5-4B", False),
        ("AutoModelForCausalLM", "google/gemma-3-4b-it", False),
        ("Gemma3ForCausalLM", "google/gemma-3-4b-it", True),
    ],
)
def test_the_type_decides_what_the_auto_class_loads(tmp_path: Path, owner: str, name: str, alone: bool) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.format(owner=owner, name=name))
    outcome = lintfit("check", "train.py", "--isolated", "--gpu", "H100", "--output-format", "json", cwd=tmp_path)
    run: dict[str, Any] = outcome.json["runs"][0]
    assert any("the language model of" in line for line in run["estimate"]["assumptions"]) is alone
