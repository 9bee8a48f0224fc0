"""Warnings of a run that stops before it trains are information until the error is mended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lintfit.commands.check import check
from lintfit.findings.model import Finding, Severity
from lintfit.options.model import Options

SCRIPT = """
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
Trainer(model=model, args=args, train_dataset=load()).train()
"""
LAUNCH = (
    "deepspeed --num_gpus 2 train.py --deepspeed ds.json --output_dir out "
    "--per_device_train_batch_size 2 --lr_scheduler_type cosine\n"
)


def _found(folder: Path, micro_batch: int) -> dict[str, Finding]:
    (folder / "train.py").write_text(SCRIPT)
    (folder / "run.sh").write_text(LAUNCH)
    scheduler = {"type": "WarmupLR", "params": {"warmup_num_steps": "auto"}}
    config = {"zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}, "scheduler": scheduler}
    (folder / "ds.json").write_text(json.dumps({**config, "train_micro_batch_size_per_gpu": micro_batch}))
    (folder / "lintfit.toml").write_text('gpu = "RTX 3090"\nseq-len = 512\n')
    return {finding.rule: finding for finding in check([folder], Options()).findings}


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_run_that_trains_is_warned_of(tmp_path: Path) -> None:
    found = _found(tmp_path, 2)
    assert "ds-vs-training-args" not in found
    assert found["ds-scheduler-overrides"].severity is Severity.WARNING


def test_what_is_said_of_one_that_stops_names_the_error(tmp_path: Path) -> None:
    found = _found(tmp_path, 4)
    assert found["ds-vs-training-args"].severity is Severity.ERROR
    waiting = found["ds-scheduler-overrides"]
    assert waiting.severity is Severity.INFO
    assert waiting.message.endswith("(the run stops before that: ds-vs-training-args)")


PARSED = """
import argparse

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--out", default="out")
options = parser.parse_args()
args = TrainingArguments(output_dir=options.out, per_device_train_batch_size=2, bf16=True)
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B", torch_dtype="bfloat16")
Trainer(model=model, args=args, train_dataset=load()).train()
"""


@pytest.mark.parametrize(("flag", "severity"), [("--wandb", Severity.INFO), ("", Severity.ERROR)])
def test_that_memory_does_not_suffice_waits_for_a_command_that_its_parser_takes(
    tmp_path: Path, flag: str, severity: Severity
) -> None:
    (tmp_path / "train.py").write_text(PARSED)
    (tmp_path / "run.sh").write_text(f"python train.py {flag}\n")
    (tmp_path / "lintfit.toml").write_text('gpu = "RTX 3090"\nseq-len = 8192\n')
    found = {finding.rule: finding for finding in check([tmp_path], Options()).findings}
    assert ("refused-flag" in found) == bool(flag)
    assert found["does-not-fit"].severity is severity
