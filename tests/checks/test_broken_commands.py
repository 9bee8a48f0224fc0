"""Of a command that is cut, or that its parser refuses, only that is said; the cut one is judged as it is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.commands.check import check
from lintfit.memory.result import Verdict
from lintfit.options.model import Options

SCRIPT = """
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
Trainer(model=model, args=args, train_dataset=load()).train()
"""


def _reported(folder: Path, behind: str, page: bool = False) -> set[str]:
    (folder / "train.py").write_text(SCRIPT)
    command = (
        f"torchrun --nproc_per_node 2 train.py --output_dir out --bf16 True {behind}\n"
        "    --gradient_checkpointing True\n"
    )
    (folder / ("plan.md" if page else "run.sh")).write_text(f"```bash\n{command}```\n" if page else command)
    (folder / "lintfit.toml").write_text('gpu = "RTX 3090"\nseq-len = 2048\n')
    return {finding.rule for finding in check([folder], Options()).findings}


def test_a_whole_command_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "does-not-fit" in _reported(tmp_path, "\\")


@pytest.mark.parametrize("cut", ["\\ ", "\\ # and", "", "  # and", "\\\n    # and", "\\\n"])
def test_a_cut_off_command_is_judged_as_it_is_meant(cut: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert _reported(tmp_path, cut) == {"cut-off-command"}
    (run,) = check([tmp_path], Options()).runs
    assert run.run.value("gradient_checkpointing") is True
    assert run.verdict is Verdict.DOES_NOT_FIT and run.plan is None


def test_of_a_command_of_a_page_with_a_comment_in_it_nothing_else_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert {"cut-off-command", "does-not-fit"} <= _reported(tmp_path, "\\ ", page=True)
    assert _reported(tmp_path, "\\  # and", page=True) == {"cut-off-command"}


def test_a_cut_is_told_beside_what_the_parser_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert _reported(tmp_path, "\\ \n    --gradient_checkpoint_all True \\") == {"refused-flag", "cut-off-command"}


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--gradient_checkpoint_all True", {"refused-flag"}),
        ("--gradient_checkpoint_all True --deepspeed missing.json", {"refused-flag", "missing-file"}),
        ("--gradient_checkpointing True --loging_strategy no", {"refused-flag", "does-not-fit"}),
    ],
)
def test_of_a_command_that_a_parser_refuses_nothing_that_follows_is_said(
    flags: str, expected: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reported = _reported(tmp_path, f"\\\n    {flags} \\")
    if "does-not-fit" in expected:
        assert expected <= reported
    else:
        assert reported == expected
