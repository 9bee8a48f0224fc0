"""bf16 swapped for fp16 on GPUs without it, in all places that say so and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import lintfit

SCRIPT = """import torch
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser((TrainingArguments,)).parse_args_into_dataclasses()
DTYPE
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf", torch_dtype=dtype)
Trainer(model=model, args=args, train_dataset=[]).train()
"""
BY_SWITCH = (
    "dtype = torch.float16 if args.fp16 else (torch.bfloat16 if args.bf16 else torch.float32)",
    "if args.bf16:\n    dtype = torch.bfloat16\nelse:\n    dtype = torch.float16",
)


@pytest.mark.parametrize("dtype", BY_SWITCH)
def test_a_type_that_follows_from_the_switch_is_left_alone(dtype: str, tmp_path: Path) -> None:
    code = SCRIPT.replace("DTYPE", dtype)
    (tmp_path / "train.py").write_text(code)
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"}}\n')
    launch = "deepspeed --num_gpus 8 train.py --output_dir out --deepspeed ds.json --bf16 True --tf32 True\n"
    (tmp_path / "run.sh").write_text(launch)
    options = ("--gpu", "v100-32gb", "--gpus", "8", "--select", "bf16-on-pre-ampere", "--fix", "--unsafe-fixes")
    lintfit("check", "run.sh", *options, "--seq-len", "512", cwd=tmp_path)
    assert (tmp_path / "train.py").read_text() == code
    assert "--fp16 True" in (tmp_path / "run.sh").read_text()
    assert "tf32" not in (tmp_path / "run.sh").read_text()


OWN_DEFAULTS = """from dataclasses import dataclass, field
from typing import Optional

import torch
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

@dataclass
class Arguments(TrainingArguments):
    bf16: bool = field(default=True)
    tf32: Optional[bool] = field(default=True)

(args,) = HfArgumentParser((Arguments,)).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf")
Trainer(model=model, args=args, train_dataset=[]).train()
"""


def test_a_plan_for_gpus_without_bf16_switches_off_what_the_script_has_on_by_itself(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(OWN_DEFAULTS)
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"}}\n')
    launch = "deepspeed --num_gpus 4 train.py --output_dir out --deepspeed ds.json --bf16 True --tf32 True\n"
    (tmp_path / "run.sh").write_text(launch)
    options = ("--gpu", "v100-32gb", "--gpus", "4", "--isolated", "--fix", "--unsafe-fixes", "--seq-len", "512")
    lintfit("check", "run.sh", *options, cwd=tmp_path)
    written = (tmp_path / "run.sh").read_text()
    assert "--fp16 True --tf32 False" in written
    assert "--bf16 False" in written
    assert (tmp_path / "train.py").read_text() == OWN_DEFAULTS


IN_A_FILE = """import sys

import torch
from dataclasses import dataclass
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

@dataclass
class Model:
    torch_dtype: str = "auto"

model_args, args = HfArgumentParser((Model, TrainingArguments)).parse_yaml_file(sys.argv[1])
model = AutoModelForCausalLM.from_pretrained(
    "meta-llama/Llama-2-7b-hf", torch_dtype=getattr(torch, model_args.torch_dtype)
)
Trainer(model=model, args=args, train_dataset=[]).train()
"""


def test_a_file_of_arguments_has_its_switch_renamed_in_place_and_its_types_with_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(IN_A_FILE)
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"}}\n')
    text = "torch_dtype: bfloat16\noutput_dir: out\nbf16: true\ndeepspeed: ds.json\n"
    (tmp_path / "sft.yaml").write_text(text)
    (tmp_path / "run.sh").write_text("deepspeed --num_gpus 8 train.py sft.yaml\n")
    options = ("--gpu", "v100-32gb", "--gpus", "8", "--select", "bf16-on-pre-ampere", "--fix", "--unsafe-fixes")
    lintfit("check", "run.sh", *options, "--seq-len", "512", cwd=tmp_path)
    after = text.replace("bfloat16", "float16").replace("bf16: true", "fp16: true")
    assert (tmp_path / "sft.yaml").read_text() == after


def test_a_recipe_has_its_switch_renamed_in_place(tmp_path: Path) -> None:
    text = "stage: sft\ndo_train: true\nmodel_name_or_path: meta-llama/Llama-2-7b-hf\nfinetuning_type: lora\n"
    text += "template: llama2\ndataset: own\ncutoff_len: 512\noutput_dir: out\nbf16: true\nddp_timeout: 1800\n"
    (tmp_path / "sft.yaml").write_text(text)
    options = ("--gpu", "v100-32gb", "--gpus", "1", "--select", "bf16-on-pre-ampere", "--fix", "--unsafe-fixes")
    lintfit("check", "sft.yaml", *options, cwd=tmp_path)
    assert (tmp_path / "sft.yaml").read_text() == text.replace("bf16: true", "fp16: true")


def test_a_deepspeed_json_that_leaves_fp16_to_the_arguments_leaves_bf16_to_them_too(tmp_path: Path) -> None:
    """Trainer before transformers 4.30 tells DeepSpeed of nothing that has no block."""
    (tmp_path / "train.py").write_text(SCRIPT.replace("DTYPE", "dtype = torch.float32"))
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3}, "fp16": {"enabled": "auto"}}\n')
    (tmp_path / "run.sh").write_text("deepspeed --num_gpus 8 train.py --output_dir out --deepspeed ds.json\n")
    options = ("--gpu", "a100-80gb", "--gpus", "8", "--select", "full-precision-training", "--fix", "--unsafe-fixes")
    lintfit("check", "run.sh", *options, "--seq-len", "512", cwd=tmp_path)
    assert '"bf16": {"enabled": "auto"}' in " ".join((tmp_path / "ds.json").read_text().split())
    assert "--bf16" in (tmp_path / "run.sh").read_text()
