"""What a check leaves out of a tree of very many runs, and that it says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lintfit.commands import check as checking
from lintfit.documents import steps
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
    monkeypatch.setattr(checking, "of_plans", lambda: Work(20_000, "expressions of all plans"))
    found = json.loads(_check(tmp_path, "--output-format", "json"))
    assert [run["verdict"] for run in found["runs"]] == ["does-not-fit"] * 4
    planned = [run["id"] for run in found["runs"] if run.get("plan")]
    assert len(planned) < 4
    assert f"and {3 - len(planned)} more" in _check(tmp_path)


def test_plans_leave_the_reading_of_other_runs_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _tree(tmp_path, "meta-llama/Llama-2-7b-hf", 2)
    monkeypatch.setattr(checking, "of_plans", lambda: Work(1, "expressions of all plans"))
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
