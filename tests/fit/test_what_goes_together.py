"""Plans that cannot run or that empty the samples are none: optimizers and engines, prompts and lengths."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import lintfit

TRAINER = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B", torch_dtype="bfloat16")
Trainer(model=model, args=args, train_dataset=data).train()
"""
RUN = "torchrun --nproc_per_node 4 train.py --output_dir out --bf16 True --gradient_checkpointing True"
DPO = """\
from trl import DPOConfig, DPOTrainer

args = DPOConfig(
    output_dir="out", fp16=True, per_device_train_batch_size=1, max_length=4096, max_prompt_length=2048,
    model_init_kwargs={"torch_dtype": "float16"}, precompute_ref_log_probs=True, gradient_checkpointing=True,
)
DPOTrainer(model="Qwen/Qwen2.5-0.5B", args=args, train_dataset=data).train()
"""


def plans(folder: Path, *words: str) -> str:
    return lintfit("check", ".", "--show-plans", "--no-cache", *words, cwd=folder).out


@pytest.mark.parametrize(("optim", "offloads"), [("adamw_torch", True), ("rmsprop", False)])
def test_only_what_deepspeed_steps_on_the_host_goes_there(tmp_path: Path, optim: str, offloads: bool) -> None:
    (tmp_path / "train.py").write_text(TRAINER.replace("Qwen2.5-1.5B", "Qwen2.5-7B"))
    (tmp_path / "run.sh").write_text(f"{RUN} --optim {optim} --per_device_train_batch_size 1\n")
    shown = plans(tmp_path, "--gpu", "RTX 3090", "--seq-len", "512", "--host-memory", "512")
    assert ("with the optimizer offloaded" in shown) is offloads


@pytest.mark.parametrize(("prompt", "cut"), [(2048, False), (512, True)])
def test_no_length_leaves_a_prompt_alone(tmp_path: Path, prompt: int, cut: bool) -> None:
    (tmp_path / "train.py").write_text(DPO.replace("max_prompt_length=2048", f"max_prompt_length={prompt}"))
    shown = plans(tmp_path, "--gpu", "T4", "--gpus", "1", "--versions", "trl=0.24,transformers=4.57")
    assert "does not fit" in shown
    assert ("cut sequences" in shown) is cut
