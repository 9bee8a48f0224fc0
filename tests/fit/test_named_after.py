"""A plan says which names of files and runs still have the number that it changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import lintfit

TRAIN = """\
import torch
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", torch_dtype=torch.bfloat16)
Trainer(model=model, args=args).train()
"""


@pytest.mark.parametrize(
    ("script", "name", "said"),
    [
        ("run.sh", "sft_bs64_lr2e-5", "The name sft_bs64_lr2e-5 still says “bs64”: the micro-batch is"),
        ("run_bz64.sh", "sft", "The name run_bz64.sh still says “bz64”: the micro-batch is"),
        ("run.sh", "sft-ga1", "The name sft-ga1 still says “ga1”: the accumulation is"),
        ("run.sh", "sft_bs640", ""),
        ("run.sh", "jobs64", ""),
        ("run.sh", "sft_bs${BATCH}", "The name sft_bs64 still says “bs64”: the micro-batch is"),
    ],
)
def test_names_that_say_the_old_number(tmp_path: Path, script: str, name: str, said: str) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    flags = f"--bf16 True --output_dir {name} --per_device_train_batch_size $BATCH --gradient_checkpointing True"
    (tmp_path / script).write_text(f"BATCH=64\ntorchrun --nproc_per_node 8 train.py {flags}\n")
    asked = ("check", script, "--gpu", "RTX 3090", "--gpus", "8", "--seq-len", "2048", "--output-format", "json")
    (run,) = lintfit(*asked, cwd=tmp_path).json["runs"]
    assert "micro_batch_size" in [step["setting"] for step in run["plan"]["steps"]]
    effects = run["plan"]["effects"]
    assert any(effect.startswith(said) for effect in effects) if said else not effects
