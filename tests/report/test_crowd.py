"""A repository of many runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import lintfit

SCRIPT = """\
import argparse
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--model")
parser.add_argument("--batch", type=int)
given = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained(given.model, torch_dtype="bfloat16")
args = TrainingArguments("out", per_device_train_batch_size=given.batch, bf16=True, gradient_checkpointing=True)
Trainer(model, args, train_dataset=data).train()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(SCRIPT)
    for name, count in (("a", 20), ("b", 12)):
        (tmp_path / name).mkdir()
        line = "torchrun --nproc_per_node 1 ../train.py --model Qwen/Qwen2.5-0.5B --batch {}\n"
        (tmp_path / name / "run.sh").write_text("".join(line.format(number + 1) for number in range(count)))
    large = "torchrun --nproc_per_node 1 train.py --model Qwen/Qwen2.5-7B --batch 1\n"
    (tmp_path / "large.sh").write_text(large + large.replace("--batch 1", "--batch 2"))
    return tmp_path


def _report(folder: Path, *flags: str) -> str:
    return lintfit("check", ".", "--gpu", "A100-40GB", "--gpus", "1", "--seq-len", "256", *flags, cwd=folder).out


def test_runs_that_fit_take_a_line_for_each_file(folder: Path) -> None:
    out = _report(folder)
    assert "a/run.sh: 20 runs fit, " in out and "b/run.sh: 12 runs fit, " in out
    assert out.count("Plan: ") == 2 and out.count("does not fit") >= 2, "what needs work is told as ever"
    assert len(out.splitlines()) < 40


def test_verbose_tells_each(folder: Path) -> None:
    assert "a/run.sh:20: fits" in _report(folder, "--verbose")


def test_a_few_runs_are_told_each(folder: Path) -> None:
    (folder / "a" / "run.sh").unlink()
    out = _report(folder)
    assert "b/run.sh:1: fits" in out and "12 runs fit" not in out


def test_folders_stand_for_many_files(folder: Path) -> None:
    for number in range(12):
        (folder / "a" / f"more{number}").mkdir()
        text = (folder / "b" / "run.sh").read_text().splitlines()[0].replace("../train", "../../train")
        (folder / "a" / f"more{number}" / "run.sh").write_text(text + "\n")
    out = _report(folder)
    assert "a/: 20 runs fit" in out and "a/more3/: 1 run fits, " in out


def test_many_runs_that_do_not_fit_are_told_by_file(folder: Path) -> None:
    line = "torchrun --nproc_per_node 1 train.py --model Qwen/Qwen2.5-7B --batch {}\n"
    (folder / "large.sh").write_text("".join(line.format(number + 1) for number in range(14)))
    out = _report(folder)
    assert "14 runs do not fit; likely GiB, → with a plan" in out
    assert re.search(r"^  large\.sh:1, :2.* \d+\.\d → \d+\.\d", out, re.MULTILINE), "what each needs, and its plan's"
    assert "Plan: " not in out and len(out.splitlines()) < 40
    assert _report(folder, "--verbose").count("Plan: ") == 14


def test_many_kinds_of_warnings_are_counted(folder: Path) -> None:
    names = ("alpha", "beta", "gamma", "delta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu")
    keys = ", ".join(f'"{name}_of_ours": 2' for name in names)
    (folder / "ds_config.json").write_text(
        f'{{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {{}}, {keys}}}'
    )
    out = _report(folder, "ds_config.json")
    assert re.search(r"^11 warnings: unknown-top-level-key \(11\)", out, re.MULTILINE), out
    assert "alpha_of_ours" in _report(folder, "ds_config.json", "--verbose")
