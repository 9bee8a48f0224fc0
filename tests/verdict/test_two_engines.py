"""A Trainer that is asked for FSDP and DeepSpeed stops: such a run has no verdict that it fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lintfit.commands.check import load_runs
from lintfit.memory.result import Verdict
from lintfit.options.model import Options

SCRIPT = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
{}
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
Trainer(model=model, args=args, train_dataset=data).train()
"""
CONFIG = {"train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}}


@pytest.mark.parametrize(
    ("line", "expected"), [("", Verdict.FITS), ('args.fsdp = "full_shard auto_wrap"', Verdict.UNKNOWN)]
)
def test_a_run_that_asks_for_two_engines_is_not_said_to_fit(tmp_path: Path, line: str, expected: Verdict) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.format(line))
    (tmp_path / "ds.json").write_text(json.dumps(CONFIG))
    command = "deepspeed --num_gpus 2 train.py --output_dir out --bf16 True --deepspeed ds.json"
    (tmp_path / "run.sh").write_text(f"{command} --per_device_train_batch_size 1\n")
    origins = {"gpu": "--gpu", "seq_len": "--seq-len"}
    options = Options(isolated=True, gpu="A100-SXM4-80GB", seq_len=512, origins=origins)
    _, (result,) = load_runs([tmp_path / "run.sh"], options)
    assert result.verdict is expected
    told = any("FSDP is asked for beside DeepSpeed" in line for line in result.unknown)
    assert told == (expected is Verdict.UNKNOWN)
