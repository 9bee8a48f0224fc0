"""Flags of a run as people write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

MODEL = ("--model", "Qwen/Qwen2.5-0.5B", "--gpu", "4090")


def _estimate(*flags: str, cwd: Path) -> Any:
    outcome = lintfit("estimate", *MODEL, *flags, "--output-format", "json", cwd=cwd)
    assert outcome.status == 0, outcome.err
    return outcome.json


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (("--zero", "3", "--gpus", "2"), ("--zero-stage", "3", "--gpus", "2")),
        (("--batch", "2"), ("--micro-batch-size", "2")),
        (("--batch_size=2",), ("--micro-batch-size", "2")),
        (("--lora",), ("--method", "lora")),
        (("--lora=16",), ("--method", "lora", "--lora-rank", "16")),
        (("--lora", "16", "--batch", "2"), ("--lora-rank", "16", "--micro-batch-size", "2")),
        (("--qlora=32",), ("--lora-rank", "32", "--quantization", "nf4")),
        (("--method", "qlora"), ("--method", "lora", "--quantization", "nf4")),
        (("--gradient-checkpointing", "--batch", "2"), ("--gradient-checkpointing=true", "--micro-batch-size=2")),
        (("--checkpointing", "off"), ("--gradient-checkpointing=false",)),
        (("--attention", "flash"), ("--attention", "flash_attention_2")),
        (("--dtype", "bfloat16"), ("--weights-dtype", "bf16")),
        (("--seq-len", "4k"), ("--seq-len", "4096")),
        (("--batch", "2", "--micro-batch", "2"), ("--micro-batch-size", "2")),
    ],
)
def test_another_spelling_is_the_same_run(written: tuple[str, ...], meant: tuple[str, ...], tmp_path: Path) -> None:
    assert _estimate(*written, cwd=tmp_path) == _estimate(*meant, cwd=tmp_path)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--gpus", "2", "--gpus", "4"), "--gpus 2 and --gpus 4: two values for one setting; give one of them"),
        (("--lora=8", "--lora-rank", "16"), "--lora-rank 8 and --lora-rank 16: two values for one setting"),
        (("--batch", "2", "--micro-batch-size", "4"), "--micro-batch-size 2 and --micro-batch-size 4: two values"),
        (("--zero",), "requires an argument"),
        (("--zreo", "3"), "No such option"),
    ],
)
def test_what_nobody_can_mean(flags: tuple[str, ...], said: str, tmp_path: Path) -> None:
    outcome = lintfit("estimate", *MODEL, *flags, cwd=tmp_path)
    assert outcome.status == 2 and said in outcome.err and outcome.err.count("\n") == 1


def test_a_switch_leaves_the_file_behind_it_alone(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print()\n")
    outcome = lintfit("estimate", "--gradient-checkpointing", "train.py", cwd=tmp_path)
    assert (outcome.status, outcome.out) == (0, "No runs found.\n")


def test_a_gpu_of_several_is_said(tmp_path: Path) -> None:
    outcome = lintfit("estimate", "--model", "gpt2", "--gpu", "A100", "--batch", "1", cwd=tmp_path)
    assert "A100 is taken for the NVIDIA A100-SXM4-40GB" in " ".join(outcome.out.split())
    clear = lintfit("estimate", "--model", "gpt2", "--gpu", "A100-80GB", "--batch", "1", cwd=tmp_path)
    assert "taken for" not in clear.out


def test_plans_of_a_run_that_flags_describe(tmp_path: Path) -> None:
    flags = ("--batch", "8", "--output-format", "json")
    outcome = lintfit("fit", "--model", "Qwen/Qwen2.5-7B", "--gpu", "4090", *flags, cwd=tmp_path)
    (run,) = json.loads(outcome.out)["runs"]
    assert run["verdict"] == "does-not-fit" and run["plans"]
