"""Runs whose trainer refuses a keyword: one line mends that, and a plan comes after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import lintfit

SCRIPT = """\
from trl import SFTConfig, SFTTrainer

args = SFTConfig("out", bf16=True, per_device_train_batch_size=16, {length}=2048)
SFTTrainer(model="Qwen/Qwen2.5-7B", args=args, train_dataset=data).train()
"""


@pytest.mark.parametrize(("length", "planned"), [("max_seq_length", False), ("max_length", True)])
def test_a_run_whose_arguments_cannot_be_made_gets_no_plan(length: str, planned: bool, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.format(length=length))
    (tmp_path / "requirements.txt").write_text("trl>=0.23.0\npeft\n")
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 8 train.py\n")
    flags = ("--gpu", "a100-80gb", "--gpus", "8", "--output-format", "json")
    (run,) = lintfit("check", "run.sh", *flags, cwd=tmp_path).json["runs"]
    assert run["verdict"] == "does-not-fit" and (run["plan"] is not None) is planned
