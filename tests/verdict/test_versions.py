"""The verdict over the versions of the libraries that may be installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("huggyllama/llama-7b")
args = TrainingArguments("out", bf16=True, per_device_train_batch_size=1, gradient_checkpointing=True)
Trainer(model=model, args=args).train()
"""
DTYPE = (
    "dtype of a bare from_pretrained: fp16 in transformers 5 ({} GiB), fp32 in 4.x ({} GiB); state it with --versions"
)


def run(folder: Path, gpu: str, *flags: str, requirements: str = "", script: str = SCRIPT) -> Any:
    (folder / "train.py").write_text(script)
    (folder / "requirements.txt").write_text(requirements)
    command = ("check", "train.py", "--gpu", gpu, "--gpus", "1", "--seq-len", "512", "--output-format", "json")
    (found,) = lintfit(*command, *flags, cwd=folder).json["runs"]
    return found


@pytest.mark.parametrize(
    ("gpu", "verdict"), [("A100 40GB", "does-not-fit"), ("A100 80GB", "unknown"), ("H200", "fits"), ("B200", "fits")]
)
def test_a_verdict_holds_for_every_version(tmp_path: Path, gpu: str, verdict: str) -> None:
    found = run(tmp_path, gpu)
    assert (found["verdict"], found["estimate"]["verdict"]) == (verdict, verdict)
    oldest = run(tmp_path, gpu, "--versions", "transformers=4.46.3")
    newest = run(tmp_path, gpu, "--versions", "transformers=5.23.0")
    both = {oldest["verdict"], newest["verdict"]}
    assert both == ({verdict} if verdict != "unknown" else {"fits", "does-not-fit"})
    peak = found["estimate"]["peak_bytes"]
    assert peak["likely"] == newest["estimate"]["peak_bytes"]["likely"]
    assert peak["low"] <= newest["estimate"]["peak_bytes"]["low"]
    assert peak["high"] >= oldest["estimate"]["peak_bytes"]["high"]


def test_what_each_version_gives_is_said_in_one_line(tmp_path: Path) -> None:
    assert run(tmp_path, "A100 80GB")["unknown"] == [DTYPE.format(53, 104)]
    text = lintfit("check", "train.py", "--gpu", "A100 80GB", "--gpus", "1", "--seq-len", "512", cwd=tmp_path).out
    assert text.count("--versions") == 1


@pytest.mark.parametrize(
    ("requirements", "verdict"),
    [("transformers>=5.1\n", "fits"), ("transformers<5\n", "does-not-fit"), ("transformers>=4.50\n", "unknown")],
)
def test_bounds_of_the_project_close_the_range(tmp_path: Path, requirements: str, verdict: str) -> None:
    assert run(tmp_path, "A100 80GB", requirements=requirements)["verdict"] == verdict


def test_what_the_version_decided_is_an_assumption(tmp_path: Path) -> None:
    lines = run(tmp_path, "B200")["estimate"]["assumptions"]
    (line,) = [line for line in lines if "--versions" in line]
    assert line.startswith("dtype of a bare from_pretrained: fp16 in transformers 5 (")


def test_versions_that_are_known_are_one_line_with_who_states_them(tmp_path: Path) -> None:
    lines = run(tmp_path, "H200", requirements="transformers==5.2.0\ntrl>=0.29\n")["estimate"]["assumptions"]
    said = "versions: transformers 5.2.0 (requirements.txt), trl 0.29 or later (requirements.txt)"
    assert [line for line in lines if "version" in line] == [said]


def test_a_run_that_no_version_changes_says_nothing_of_them(tmp_path: Path) -> None:
    stated = SCRIPT.replace('7b")', '7b", torch_dtype="bfloat16")').replace(
        "bf16=True", 'bf16=True, optim="adamw_torch"'
    )
    found = run(tmp_path, "H200", script=stated)
    assert found["verdict"] == "fits"
    assert not [line for line in found["estimate"]["assumptions"] if "version" in line]


PEFT = "transformers>=4.46\npeft\n"


def test_a_plan_fits_with_every_version(tmp_path: Path) -> None:
    plan = run(tmp_path, "A100 40GB", requirements=PEFT)["plan"]
    assert plan is not None and plan["verdict"] == "fits"
    flags = ("--gpu", "A100 40GB", "--gpus", "1", "--seq-len", "512")
    lintfit("check", "train.py", "--fix", "--unsafe-fixes", *flags, cwd=tmp_path)
    fixed = (tmp_path / "train.py").read_text()
    assert fixed != SCRIPT
    for version in ("4.46.3", "5.23.0"):
        found = run(tmp_path, "A100 40GB", "--versions", f"transformers={version}", script=fixed, requirements=PEFT)
        assert found["verdict"] == "fits", version


def test_what_only_some_versions_do_is_said_of_no_others(tmp_path: Path) -> None:
    """TRL loads a model that it is given by name in bf16 from 0.22 until 0.29, in fp32 before and since."""
    (tmp_path / "train.py").write_text(
        "from trl import SFTConfig, SFTTrainer\n"
        'args = SFTConfig(output_dir="out", per_device_train_batch_size=2, max_length=1024)\n'
        'SFTTrainer(model="Qwen/Qwen2.5-0.5B", args=args, train_dataset=data).train()\n'
    )
    command = ("check", "train.py", "--gpu", "RTX 3060", "--output-format", "json")
    (reason,) = lintfit(*command, cwd=tmp_path).json["runs"][0]["unknown"]
    assert ": bf16 in trl 0.22 until 0.29 (" in reason
    assert "fp32 before (" in reason
