"""A launch with one variable for the batches of the training and of the evaluation has both changed by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.documents.edits import apply
from lintfit.documents.model import FileText
from lintfit.documents.shell_reader import read_shell
from lintfit.sources.launchers.launcher import read_launches


@pytest.mark.parametrize(
    ("flags", "value", "expected"),
    [
        (("per_device_train_batch_size", "per_device_eval_batch_size"), "2", "B=2 $B $B"),
        (("train-batch-size", "eval-batch-size"), "2", "B=2 $B $B"),
        (("batch_size", "eval_batch_size"), "2", "B=2 $B $B"),
        (("per_device_train_batch_size", "per_device_eval_batch_size"), "16", "B=8 16 $B"),  # which may not fit
        (("max_train_samples", "max_eval_samples"), "2", "B=8 2 $B"),
    ],
)
def test_only_a_smaller_batch_takes_the_evaluations_along(flags: tuple[str, str], value: str, expected: str) -> None:
    first, second = flags
    form = f"B={{}}\ntorchrun --nproc_per_node 2 train.py --{first} {{}} --{second} {{}}\n"
    text = form.format("8", "$B", "$B")
    (launch,) = read_launches(read_shell(FileText(Path("run.sh"), text)))
    edits = launch.set_flag(first, value)
    assert edits is not None
    variable, *words = expected.removeprefix("B=").split()
    assert apply(text, [edit.edit for edit in edits]) == form.format(variable, *words)
