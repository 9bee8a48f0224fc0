"""Adapters alone get no other engine; both switches of a 16-bit type are written where both are missing."""

from __future__ import annotations

from pathlib import Path

from tests.support import lintfit

LORA = """\
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("huggyllama/llama-7b", torch_dtype=torch.float16)
model = get_peft_model(model, LoraConfig(r=16, target_modules=["q_proj", "v_proj"]))
args = TrainingArguments(
    output_dir="out",
    fp16=True,
    per_device_train_batch_size=8,
    gradient_accumulation_steps=4,
)
Trainer(model=model, args=args, train_dataset=data).train()
"""
ON_BY_ITSELF = """\
from dataclasses import dataclass

from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments


@dataclass
class Arguments(TrainingArguments):
    bf16: bool = True


(args,) = HfArgumentParser(Arguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", torch_dtype="float32")
Trainer(model=model, args=args, train_dataset=data).train()
"""


def test_adapters_get_no_engine_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LORA)
    (tmp_path / "run.sh").write_text("CUDA_VISIBLE_DEVICES=0 accelerate launch train.py\n")
    shown = lintfit("check", "run.sh", "--gpu", "V100-32GB", "--seq-len", "1024", "--show-plans", cwd=tmp_path).out
    assert "plans: all kinds that fit" in shown
    assert "ZeRO-2" not in shown and "ZeRO-3 with the optimizer offloaded" not in shown


def test_both_switches_are_added(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ON_BY_ITSELF)
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 2 train.py --output_dir out\n")
    flags = ("--gpu", "V100-32GB", "--seq-len", "512", "--select", "bf16-on-pre-ampere", "--fix", "--unsafe-fixes")
    lintfit("check", "run.sh", *flags, cwd=tmp_path)
    assert "--bf16 False --fp16 True" in (tmp_path / "run.sh").read_text().replace(" \\\n   ", "")
