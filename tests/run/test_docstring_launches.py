"""A script whose own docstring starts it is judged as that line starts it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.run.test_beside import LOOP, YAML, put
from tests.support import lintfit

LAUNCH = "accelerate launch --config_file zero3.yaml \\\n    examples/train.py --lr 1e-5"


def runs_of(folder: Path, docstring: str) -> list[dict[str, Any]]:
    put(folder, {"train.py": f'"""Train.\n\n{docstring}\n"""\n{LOOP}', "zero3.yaml": YAML, "other.yaml": YAML})
    flags = ("--gpu", "RTX 4090", "--gpus", "8", "--output-format", "json")
    runs: list[dict[str, Any]] = lintfit("check", "train.py", *flags, cwd=folder).json["runs"]
    return runs


@pytest.mark.parametrize("docstring", [LAUNCH, LAUNCH.replace("\\\n", "\\\\\n"), f"    {LAUNCH}", f"Usage: {LAUNCH}"])
def test_the_docstring_says_with_which_config_it_runs(tmp_path: Path, docstring: str) -> None:
    (run,) = runs_of(tmp_path, docstring)
    assert run["id"] == "train.py:3"
    assert (run["settings"]["zero_stage"]["value"], run["settings"]["gpus"]["value"]) == (3, 4)


@pytest.mark.parametrize(
    "docstring",
    [
        "Starts by accelerate launch --config_file zero3.yaml train.py",
        "accelerate launch --config_file gone.yaml train.py",
        "accelerate launch --config_file zero3.yaml another.py",
        "deepspeed is used by train.py",
        "accelerate launch train.py --config <your config> --deepspeed <$PATH_TO_CONFIG>",
    ],
)
def test_what_is_no_launch_of_it_or_names_what_is_not_there_says_nothing(tmp_path: Path, docstring: str) -> None:
    (run,) = runs_of(tmp_path, docstring)
    assert run["id"] == "train.py"
    assert run["settings"]["engine"]["value"] == "ddp"


def test_each_line_that_starts_it_is_a_run(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, f"{LAUNCH}\n\ntorchrun --nproc_per_node 2 train.py")
    assert [(run["id"], run["settings"]["engine"]["value"]) for run in runs] == [
        ("train.py:3", "deepspeed"),
        ("train.py:6", "ddp"),
    ]


@pytest.mark.parametrize(("end", "known"), [(" --lr 1e-5", True), (" --lr 1e-5 ...", False), (" \\\n    …", False)])
def test_a_command_that_leaves_flags_out_decides_nothing_that_they_may_say(
    tmp_path: Path, end: str, known: bool
) -> None:
    script = f'''"""Train.

python train.py --model Qwen/Qwen2.5-7B{end}
"""
import argparse
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
parser = argparse.ArgumentParser()
parser.add_argument("--model")
parser.add_argument("--lr", type=float)
parser.add_argument("--bf16", action="store_true")
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained(args.model, torch_dtype="float32")
Trainer(model=model, args=TrainingArguments("out", bf16=args.bf16, gradient_checkpointing=True)).train()
'''
    put(tmp_path, {"train.py": script})
    report = lintfit("check", "train.py", "--gpu", "RTX 3090", "--seq-len", "1024", cwd=tmp_path)
    assert ("does not fit" in report.out) is known
    assert ('which flags may decide that the command leaves out ("...")' in " ".join(report.out.split())) is not known
