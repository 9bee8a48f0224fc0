"""``lintfit explain-oom``: a log against the run that it was."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import lintfit

SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", torch_dtype="bfloat16")
args = TrainingArguments("out", per_device_train_batch_size=4, bf16=True, gradient_checkpointing=True)
Trainer(model, args, train_dataset=data).train()
"""


def _message(allocated: float, unused: float, others: float = 0.0, asked: str = "172.00 MiB") -> str:
    free = 23.69 - allocated - unused - others - 0.6
    process = f" Process 11 has {others:.2f} GiB memory in use." if others else ""
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 4 has a total capacity of 23.69 GiB of "
        f"which {free:.2f} GiB is free.{process} Including non-PyTorch memory, this process has "
        f"{allocated + unused + 0.6:.2f} GiB memory in use. Of the allocated memory {allocated:.2f} GiB is allocated by "
        f"PyTorch, and {unused:.2f} GiB is reserved by PyTorch but unallocated.\n"
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 2 train.py\n")
    (tmp_path / "lintfit.toml").write_text("seq-len = 1024\n")
    return tmp_path


def _causes(folder: Path, log: str, *more: str) -> list[str]:
    (folder / "log").write_text(log)
    outcome = lintfit("explain-oom", "log", *more, "--output-format", "json", cwd=folder)
    assert outcome.status == 0, outcome.err
    return [cause["what"] for cause in outcome.json["causes"]]


def test_another_process(folder: Path) -> None:
    assert _causes(folder, _message(10, 0.2, 12)) == ["another process"]


def test_fragmentation(folder: Path) -> None:
    assert _causes(folder, _message(15, 6)) == ["fragmentation"]
    assert _causes(folder, _message(22, 0.5)) == []


def test_more_than_the_settings_need(folder: Path) -> None:
    assert _causes(folder, _message(22, 0.5), "run.sh") == ["more than the settings need"]


def test_shared_memory(folder: Path) -> None:
    assert _causes(folder, "RuntimeError: insufficient shared memory (shm)\n") == ["shared memory"]


def test_killed(folder: Path) -> None:
    found = _causes(folder, "x exits with return code = -9\n", "run.sh", "--host-memory", "8GiB")
    assert found == ["host memory", "host memory"]


def test_the_report(folder: Path) -> None:
    (folder / "log").write_text(_message(22, 0.5))
    out = lintfit("explain-oom", "log", "run.sh", cwd=folder).out
    assert out.startswith("log:1: a GPU ran out of memory\n")
    assert "GPU 4 of 23.7 GiB: 22.0 GiB of tensors, 0.5 held by torch and unused" in " ".join(out.split())
    assert "run.sh:1: fits" in out and "lintfit fit --margin" in out


def test_a_run_that_does_not_fit_has_its_plan(folder: Path) -> None:
    (folder / "train.py").write_text(SCRIPT.replace("Qwen2.5-0.5B", "Qwen2.5-7B"))
    (folder / "log").write_text(_message(22.5, 0.2))
    out = lintfit("explain-oom", "log", "run.sh", cwd=folder).out
    assert "run.sh:1: does not fit" in out and "Plan:" in out and "23.7 usable" in out


def test_standard_input_and_no_death(folder: Path) -> None:
    outcome = lintfit("explain-oom", "-", cwd=folder, stdin=b"fine\n")
    assert (outcome.status, outcome.err) == (1, "lintfit: standard input: no death by memory found in it\n")
    missing = lintfit("explain-oom", "nope.log", cwd=folder)
    assert missing.status == 2 and "nope.log: cannot be read" in missing.err
