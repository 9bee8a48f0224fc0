"""What the GPUs cannot do is changed with the rest of a plan, or the plan is left to a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

SCRIPT = """\
from dataclasses import dataclass

from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
{imports}

@dataclass
class Own:
    flash: bool = True


own, args = HfArgumentParser((Own, TrainingArguments)).parse_args_into_dataclasses()
{before}
model = AutoModelForCausalLM.from_pretrained(
    "huggyllama/llama-7b",
    torch_dtype="float16",
    {kernel}
)
Trainer(model=model, args=args, train_dataset=data).train()
"""
LAUNCH = """\
torchrun --nproc_per_node 4 train.py \\
    --output_dir out \\
    --fp16 True \\
    --gradient_checkpointing True \\
    --per_device_train_batch_size 1 \\
    --deepspeed ds.json{more}
"""
ZERO = '{"fp16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto"}\n'


def planned(folder: Path, launch: str = LAUNCH.format(more=""), **parts: str) -> tuple[dict[str, Any], str]:
    """The plan of the run on V100s, and the launch with it."""
    (folder / "train.py").write_text(SCRIPT.format(**{"imports": "", "before": "", "kernel": "", **parts}))
    (folder / "run.sh").write_text(launch)
    (folder / "ds.json").write_text(ZERO)
    (folder / "requirements.txt").write_text("transformers==4.36.2\ndeepspeed==0.12.6\n")
    flags = ("--gpu", "V100-32GB", "--seq-len", "1024", "--host-memory", "512", "--unsafe-fixes")
    (run,) = lintfit("check", "run.sh", *flags, "--output-format", "json", cwd=folder).json["runs"]
    lintfit("check", "run.sh", *flags, "--fix", cwd=folder)
    return run["plan"], (folder / "run.sh").read_text()


def test_a_field_of_the_command_line_that_decides_the_kernel_is_set_for_this_run(tmp_path: Path) -> None:
    kernel = 'attn_implementation="flash_attention_2" if own.flash else "eager",'
    plan, launch = planned(tmp_path, kernel=kernel)
    assert "by_hand" not in plan
    assert "--flash False" in launch
    assert plan["steps"][-1] | {"edits": []} == {
        "setting": "attention", "from": "flash_attention_2", "to": "eager", "path": "run.sh", "edits": [],
    }  # fmt: skip


def test_attention_that_the_project_puts_in_is_a_persons_to_take_out(tmp_path: Path) -> None:
    imports = "from llama_flash_attn_monkey_patch import replace_llama_attn_with_flash_attn\n"
    plan, launch = planned(tmp_path, imports=imports, before="replace_llama_attn_with_flash_attn()\n")
    assert "FlashAttention, which Tesla V100" in plan["by_hand"]
    assert launch == LAUNCH.format(more="")


def test_tf32_stays_in_no_plan_that_is_written(tmp_path: Path) -> None:
    plan, _ = planned(tmp_path, LAUNCH.format(more=" \\\n    --tf32 True"))
    assert plan["by_hand"] == "run.sh:7 has TF32, which Tesla V100-SXM2-32GB does not have"


@pytest.mark.parametrize("line", ["", "# print(outputs.logits)"])
def test_ligers_loss_leaves_no_logits_to_a_loss_of_the_projects_own(tmp_path: Path, line: str) -> None:
    launch = "python train.py --output_dir out --bf16 True --per_device_train_batch_size 1"
    (tmp_path / "run.sh").write_text(launch + " --gradient_checkpointing True --optim adafactor\n")
    (tmp_path / "train.py").write_text(
        SCRIPT.format(imports=line, before="", kernel="")
        .replace("float16", "bfloat16")
        .replace("huggyllama/llama-7b", "meta-llama/Llama-3.2-1B")
    )
    flags = ("--gpu-memory", "13GiB", "--seq-len", "8192", "--output-format", "json")
    (run,) = lintfit("check", "run.sh", *flags, cwd=tmp_path).json["runs"]
    assert ("Liger" in run["plan"]["name"]) is not line.startswith("#")
