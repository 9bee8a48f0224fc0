"""On GPUs without FlashAttention a launch starts the file that puts none in, where there is one beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

TRAIN = """\
import transformers


def train(attn_implementation=None):
    parser = transformers.HfArgumentParser(transformers.TrainingArguments)
    (args,) = parser.parse_args_into_dataclasses()
    model = transformers.AutoModelForCausalLM.from_pretrained(
        "huggyllama/llama-7b", attn_implementation=attn_implementation
    )
    transformers.Trainer(model=model, args=args, train_dataset=data).train()


if __name__ == "__main__":
    train()
"""
PATCHED = """\
# Call it before transformers is imported.
from pkg.llama_flash_attn_monkey_patch import replace_llama_attn_with_flash_attn

replace_llama_attn_with_flash_attn()

from pkg.train import train

if __name__ == "__main__":
    train()
"""
ASKED = """\
from pkg.train import train

if __name__ == "__main__":
    train(attn_implementation="flash_attention_2")
"""
LAUNCH = """\
deepspeed --num_gpus 8 pkg/train_mem.py \\
    --deepspeed zero3.json \\
    --output_dir out \\
    --bf16 True \\
    --gradient_checkpointing True \\
    --per_device_train_batch_size 16 \\
    --gradient_accumulation_steps 1
"""
ZERO3 = (
    '{"fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3}, '
    '"train_micro_batch_size_per_gpu": "auto", "train_batch_size": "auto", "gradient_accumulation_steps": "auto"}\n'
)


def planned(folder: Path, entry: str, gpu: str) -> tuple[dict[str, Any], str]:
    """The plan of the run, and the launch with it."""
    (folder / "pkg").mkdir()
    (folder / "pkg" / "train_mem.py").write_text(entry)
    (folder / "pkg" / "train.py").write_text(TRAIN)
    (folder / "run.sh").write_text(LAUNCH)
    (folder / "zero3.json").write_text(ZERO3)
    release = "4.36.2" if "attn_implementation" in entry else "4.31.0"  # the first that chooses a kernel is 4.36
    (folder / "requirements.txt").write_text(f"transformers=={release}\ndeepspeed==0.12.6\n")
    flags = ("--gpu", gpu, "--seq-len", "2048", "--host-memory", "512", "--unsafe-fixes")
    (run,) = lintfit("check", "run.sh", *flags, "--output-format", "json", cwd=folder).json["runs"]
    lintfit("check", "run.sh", *flags, "--fix", cwd=folder)
    return run["plan"], (folder / "run.sh").read_text()


@pytest.mark.parametrize("entry", [PATCHED, ASKED.replace("(attn", "(  # faster\n        attn")])
def test_the_file_that_trains_is_started_itself(tmp_path: Path, entry: str) -> None:
    plan, launch = planned(tmp_path, entry, "V100-32GB")
    assert "by_hand" not in plan
    assert "pkg/train.py" in launch and "--fp16 True" in launch


def test_a_file_that_does_more_is_left(tmp_path: Path) -> None:
    plan, launch = planned(tmp_path, PATCHED.replace("\n\nfrom", "\nset_seeds()\n\nfrom"), "V100-32GB")
    assert "FlashAttention" in plan["by_hand"] and "pkg/train_mem.py" in launch


def test_gpus_that_run_it_go_on_with_it(tmp_path: Path) -> None:
    _, launch = planned(tmp_path, PATCHED, "RTX-3090")
    assert "pkg/train_mem.py" in launch and launch != LAUNCH
