"""A micro-batch that the Trainer lowers until it fits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("{model}", torch_dtype="bfloat16")
args = TrainingArguments("out", bf16=True, per_device_train_batch_size=64, auto_find_batch_size={searches})
Trainer(model, args, train_dataset=data).train()
"""


def _run(folder: Path, model: str, searches: bool) -> Any:
    (folder / "train.py").write_text(SCRIPT.format(model=model, searches=searches))
    (folder / "run.sh").write_text("python train.py\n")
    flags = ("--gpu", "RTX 3090", "--gpus", "1", "--seq-len", "512", "--output-format", "json")
    (run,) = json.loads(lintfit("check", "run.sh", *flags, cwd=folder).out)["runs"]
    return run


def test_it_is_lowered_until_it_fits(tmp_path: Path) -> None:
    assert _run(tmp_path, "Qwen/Qwen2.5-0.5B", searches=False)["verdict"] == "does-not-fit"
    found = _run(tmp_path, "Qwen/Qwen2.5-0.5B", searches=True)
    assert found["verdict"] != "does-not-fit"
    batch = found["settings"]["micro_batch_size"]
    assert 1 <= batch["value"] < 64 and batch["from"]["detail"] == "auto_find_batch_size lowers 64 until it fits"


@pytest.mark.parametrize("searches", [False, True])
def test_what_fits_with_no_batch_does_not(tmp_path: Path, searches: bool) -> None:
    found = _run(tmp_path, "Qwen/Qwen2.5-7B", searches)
    assert found["verdict"] == "does-not-fit"
    assert found["settings"]["micro_batch_size"]["value"] == (1 if searches else 64)
