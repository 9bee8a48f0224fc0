"""A DeepSpeed or Accelerate config is not among the files; a run may fit, or not, whatever it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

SCRIPT = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("{model}", torch_dtype="bfloat16")
Trainer(model=model, args=args, train_dataset=data).train()
"""
FLAGS = "--output_dir out --bf16 --gradient_checkpointing --per_device_train_batch_size 1"


def judged(folder: Path, model: str, launch: str, *flags: str) -> dict[str, Any]:
    (folder / "train.py").write_text(SCRIPT.format(model=model))
    (folder / "run.sh").write_text(f"{launch} {FLAGS}\n")
    command = ("check", "run.sh", "--gpu", "a100-80gb", "--seq-len", "512", "--output-format", "json")
    return lintfit(*command, *flags, cwd=folder).json


@pytest.mark.parametrize(
    ("model", "config", "verdict"),
    [
        ("Qwen/Qwen2.5-0.5B", "config.json", "fits"),
        ("Qwen/Qwen2.5-7B", "config.json", "unknown"),  # only if it asks for ZeRO
        ("Qwen/Qwen2.5-7B", "deepspeed_stage3.json", "fits"),
        ("Qwen/Qwen2.5-7B", "ds_z3_config.json", "fits"),
        ("Qwen/Qwen2.5-72B", "zero2.json", "does-not-fit"),  # 16-bit weights alone take 135 GiB
    ],
)
def test_what_a_deepspeed_file_may_say(tmp_path: Path, model: str, config: str, verdict: str) -> None:
    report = judged(tmp_path, model, f"deepspeed train.py --deepspeed {config}", "--gpus", "8")
    (run,) = report["runs"]
    assert run["verdict"] == verdict
    assert [each["rule"] for each in report["findings"] if each["severity"] == "error"][-1:] == ["missing-file"]
    if verdict != "unknown":
        assert any(f"whatever {config}" in line for line in run["estimate"]["assumptions"])


@pytest.mark.parametrize(("model", "verdict"), [("Qwen/Qwen2.5-0.5B", "fits"), ("Qwen/Qwen2.5-7B", "unknown")])
def test_what_an_accelerate_file_may_say(tmp_path: Path, model: str, verdict: str) -> None:
    report = judged(tmp_path, model, "accelerate launch --config_file fsdp.yaml train.py", "--gpus", "8")
    assert report["runs"][0]["verdict"] == verdict


def test_what_is_open_beside_the_file_stays_open(tmp_path: Path) -> None:
    launch = "deepspeed train.py --deepspeed zero2.json --optim $OPTIM"
    assert judged(tmp_path, "Qwen/Qwen2.5-0.5B", launch, "--gpus", "8")["runs"][0]["verdict"] == "unknown"


def test_two_files_that_are_not_there_are_one_too_many(tmp_path: Path) -> None:
    launch = "accelerate launch --config_file a.yaml train.py --deepspeed zero2.json"
    assert judged(tmp_path, "Qwen/Qwen2.5-0.5B", launch, "--gpus", "8")["runs"][0]["verdict"] == "unknown"
