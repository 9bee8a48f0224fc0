"""What a check leaves out of a tree of very many runs, and that it says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lintfit.commands import check as checking
from lintfit.documents import limits, steps
from lintfit.documents.model import Kind
from lintfit.documents.steps import Work
from lintfit.run import load
from tests.support import lintfit

TRAIN = """from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
args = TrainingArguments(output_dir="out", per_device_train_batch_size={batch})
Trainer(model=AutoModelForCausalLM.from_pretrained("{model}"), args=args).train()
"""


def _tree(folder: Path, model: str = "gpt2", count: int = 4) -> None:
    (folder / "train.py").write_text(TRAIN.format(batch=1, model=model))
    for index in range(count):
        (folder / f"r{index}.sh").write_text(f"torchrun --nproc_per_node 2 train.py --a {index}\n" * 2)


def _check(folder: Path, *flags: str) -> str:
    return lintfit("check", ".", "--gpu", "3090", "--gpus", "2", "--no-cache", *flags, cwd=folder).out


def test_files_of_runs_beyond_those_that_are_judged_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _tree(tmp_path)
    whole = _check(tmp_path)
    assert "8 runs: 8 fit. All checks passed" in whole
    monkeypatch.setattr(load, "MOST_RUNS", 5)
    out = _check(tmp_path)
    assert "5 runs: 5 fit. No findings. 5 files read, 2 skipped." in out
    assert "those that begin here are not judged: r2.sh, r3.sh" in " ".join(out.split())
    status = lintfit("check", ".", "--gpu", "3090", "--no-cache", "--fail-on", "unknown", cwd=tmp_path).status
    assert status == 1


def test_readings_by_older_versions_count_as_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _tree(tmp_path)
    monkeypatch.setattr(load, "MOST_READINGS", 24)
    assert "8 runs: 8 fit. All checks passed" in _check(tmp_path)
    monkeypatch.setattr(load, "MOST_READINGS", 12)
    out = _check(tmp_path)
    assert "4 runs: 4 fit. No findings. 5 files read, 2 skipped." in out
    assert "those that begin here are not judged: r2.sh, r3.sh" in " ".join(out.split())
    (tmp_path / "requirements.txt").write_text("transformers==4.46.3\ntorch==2.5\naccelerate==1.1.1\n")
    assert "8 runs: 8 fit. All checks passed" in _check(tmp_path)


def test_the_last_plans_are_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _tree(tmp_path, "meta-llama/Llama-2-7b-hf", 2)
    monkeypatch.setattr(checking, "of_plans", lambda *_: Work(20_000, "expressions of all plans"))
    found = json.loads(_check(tmp_path, "--output-format", "json"))
    assert [run["verdict"] for run in found["runs"]] == ["does-not-fit"] * 4
    planned = [run["id"] for run in found["runs"] if run.get("plan")]
    assert len(planned) < 4
    assert f"and {3 - len(planned)} more" in _check(tmp_path)


def test_plans_leave_the_reading_of_other_runs_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _tree(tmp_path, "meta-llama/Llama-2-7b-hf", 2)
    monkeypatch.setattr(checking, "of_plans", lambda *_: Work(1, "expressions of all plans"))
    out = _check(tmp_path)
    assert "4 runs: 4 do not fit" in out and "no plan was looked for to the end for" in out


def test_all_scripts_together_have_one_counter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for index in range(4):
        (tmp_path / f"t{index}.py").write_text("x = 1\n" * 50 + TRAIN.format(batch=index + 1, model="gpt2"))
    monkeypatch.setattr(checking, "of_tree", lambda: Work(60, "expressions of all scripts"))
    out = _check(tmp_path)
    assert "not judged" in out and "more than 60 expressions of all scripts" in " ".join(out.split())


def test_all_shell_scripts_together_have_one_counter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _tree(tmp_path)
    (tmp_path / "env.sh").write_text("".join(f"A{index}=$A{index - 1}x\n" for index in range(50)))
    for index in range(4):
        script = tmp_path / f"r{index}.sh"
        script.write_text(f"source env.sh\n{script.read_text()}")
    assert "8 runs: 8 fit. All checks passed" in _check(tmp_path)
    monkeypatch.setattr(steps, "OF_SHELLS", 150)
    out = " ".join(_check(tmp_path).split())
    assert "All checks passed" not in out and "8 runs" not in out and "runs: " in out
    assert "r3.sh:1:1: not read: more than 150 steps of all shell scripts: what comes after is not followed" in out


def test_trainings_of_a_notebook(tmp_path: Path) -> None:
    source = TRAIN.format(batch=1, model="gpt2")
    cells = [{"cell_type": "code", "source": source, "metadata": {}, "outputs": []}] * (load.MOST_TRAININGS + 2)
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    done = lintfit("check", ".", "--gpu", "3090", "--no-cache", cwd=tmp_path)
    assert f"{load.MOST_TRAININGS} runs" in done.out
    assert f"more than {load.MOST_TRAININGS} trainings: the others are not judged" in done.err


SFT = """from datasets import load_dataset
from trl import SFTConfig, SFTTrainer
args = SFTConfig(
    output_dir="out", bf16=True, packing=True, max_length=4096,
    per_device_train_batch_size=4, gradient_checkpointing=False,
)
SFTTrainer("Qwen/Qwen2.5-0.5B", args=args, train_dataset=load_dataset("trl-lib/Capybara", split="train")).train()
"""
PARSED = """from trl import ModelConfig, ScriptArguments, SFTConfig, SFTTrainer, TrlParser
script_args, training_args, model_args = TrlParser((ScriptArguments, SFTConfig, ModelConfig)).parse_args_and_config()
training_args.model_init_kwargs = {"dtype": model_args.dtype}
SFTTrainer(model=model_args.model_name_or_path, args=training_args).train()
"""
RECIPE = """model_name_or_path: Qwen/Qwen2.5-1.5B
dtype: bfloat16
output_dir: out
gradient_checkpointing: false
max_length: 4096
per_device_train_batch_size: 4
"""


def _fix(folder: Path) -> str:
    flags = ("--fix", "--unsafe-fixes", "--gpu", "3090", "--gpus", "1", "--no-cache")
    return " ".join(lintfit("check", ".", *flags, cwd=folder).out.split())


def _many(folder: Path, count: int) -> None:
    """Launches that do not fit, each with a script of its own."""
    for index in range(count):
        (folder / f"t{index}.py").write_text(SFT)
        (folder / f"r{index}.sh").write_text(f"python t{index}.py\n")


def test_what_the_fixes_of_one_check_may_take_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs it again gets the rest."""
    _many(tmp_path, 4)
    monkeypatch.setattr(steps, "OF_FIXING", 2_000)
    out = _fix(tmp_path)
    assert "4 runs: 3 do not fit, 1 fits" in out
    assert "not all was fixed, as the fixes of one check may take only so long: run it again" in out
    assert "4 runs: 2 do not fit, 2 fit" in _fix(tmp_path)
    monkeypatch.undo()
    out = _fix(tmp_path)
    assert "4 runs: 4 fit" in out
    assert "not all was fixed" not in out


def test_fixes_of_different_runs_are_made_in_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _many(tmp_path, 4)
    monkeypatch.setattr(checking, "MAX_PASSES", 1)
    assert "4 runs: 4 fit" in _fix(tmp_path)


def test_so_are_those_of_equal_lines_of_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text(PARSED)
    (tmp_path / "sft.yaml").write_text(RECIPE)
    line = "python train.py --config sft.yaml --max_length 2048\n"
    (tmp_path / "run.sh").write_text(line * 4 + "echo done\n" + line)
    monkeypatch.setattr(checking, "MAX_PASSES", 1)
    assert "5 runs: 5 fit" in _fix(tmp_path)


def test_what_one_run_shares_with_others_is_not_changed_with_theirs(tmp_path: Path) -> None:
    """Launches of one script: the first fix mends all, and is counted once."""
    (tmp_path / "train.py").write_text(SFT)
    for index in range(3):
        (tmp_path / f"r{index}.sh").write_text("python train.py\n")
    out = _fix(tmp_path)
    assert "3 runs: 3 fit" in out
    assert "Fixed 1 finding" in out


PINNED = """from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
args = TrainingArguments(output_dir="out", bf16=True, deepspeed="ds.json")
Trainer(model=AutoModelForCausalLM.from_pretrained("gpt2"), args=args, train_dataset=None).train()
"""


def test_what_confirming_fixes_may_take_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each folder has pins of its own, so that a fix of what all of them read is tried with every one."""
    (tmp_path / "train.py").write_text(PINNED)
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2, "cpu_offload": true}, "steps_per_prnt": 1}')
    for index in range(8):
        folder = tmp_path / f"a{index}"
        folder.mkdir()
        (folder / "run.sh").write_text("deepspeed ../train.py --deepspeed ../ds.json\n")
        (folder / "requirements.txt").write_text(f"transformers==4.{40 + index}\n")

    def checked() -> tuple[int, str]:
        flags = ("--gpu", "3090", "--gpus", "2", "--no-cache", "--output-format")
        found = json.loads(lintfit("check", ".", *flags, "json", cwd=tmp_path).out)
        said = lintfit("check", ".", *flags, "concise", cwd=tmp_path).out
        return sum(each["fix"] is not None for each in found["findings"]), said

    offered, said = checked()
    assert offered >= 2 and "no fix was confirmed" not in said
    monkeypatch.setattr(steps, "OF_CONFIRMING", 4_000)
    fewer, said = checked()
    assert fewer < offered
    (line,) = [line for line in said.splitlines() if line.startswith("no fix was confirmed for ")]
    assert line.endswith("confirming all fixes of one check may take only so long")


@pytest.mark.parametrize("most", [60, 120, 240, 480, 960])
def test_trainings_of_a_notebook_behind_the_last_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    source = TRAIN.format(batch=1, model="gpt2")
    cells = [{"cell_type": "code", "source": source, "metadata": {}, "outputs": []}] * 8
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    monkeypatch.setattr(steps, "OF_TREE", most)
    done = lintfit("check", ".", "--gpu", "3090", "--no-cache", cwd=tmp_path)
    assert "internal error" not in done.err


def test_no_plan_for_a_run_with_a_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text(TRAIN.format(batch=64, model="Qwen/Qwen2.5-7B"))
    assert "no plan was looked for" not in _check(tmp_path)
    monkeypatch.setitem(limits.MAX_PLANNED, Kind.PYTHON, 100)
    assert "train.py: no plan was looked for: train.py is larger than 0 KiB" in " ".join(_check(tmp_path).split())
