"""A fix is offered only where the files, read again with it, are what it claims."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lintfit.commands.check import load_runs
from lintfit.documents.model import Document, Edit, FileEdit, Span
from lintfit.documents.workspace import Workspace
from lintfit.findings.model import Applicability, Finding, Fix, Severity
from lintfit.findings.results import RunResult
from lintfit.fit.confirm import Confirmation
from lintfit.options.model import Options
from lintfit.settings.model import Place

SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", torch_dtype="bfloat16")
args = TrainingArguments(
    output_dir="out", per_device_train_batch_size=4, gradient_accumulation_steps=2, max_steps=10, bf16=True
)
Trainer(model=model, args=args).train()
"""

OPTIONS = Options(gpu="A100-SXM4-80GB", gpus=1, seq_len=512, isolated=True, origins={"gpu": "--gpu", "gpus": "--gpus"})


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunResult:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(SCRIPT)
    (judged,) = load_runs([Path("train.py")], OPTIONS)[1]
    assert judged.verdict == "fits"
    return judged


def offered(run: RunResult, old: str, new: str, applicability: Applicability, **changes: object) -> bool:
    """Whether a fix that puts ``new`` in the place of ``old`` is still offered after its confirmation."""
    document: Document = run.run.documents[0]
    start = document.text.index(old)
    span = Span(start, start + len(old))
    fix = Fix("mend it", applicability, (FileEdit(document.path, Edit(span, new), document),), changes)
    finding = Finding("a-rule", "LF000", Severity.WARNING, "wrong", Place(document, span), run=run.run.id, fix=fix)
    confirmed = Confirmation([run], Workspace(), OPTIONS).of([finding, replace(finding, fix=None)])
    assert confirmed.findings[1].fix is None
    assert confirmed.refused == (confirmed.findings[0].fix is None)
    return confirmed.findings[0].fix is fix


def test_a_fix_that_does_what_it_says_is_offered(run: RunResult) -> None:
    assert offered(run, "max_steps=10", "gradient_checkpointing=True", Applicability.SAFE, gradient_checkpointing=True)


def test_a_claim_that_does_not_come_true_is_not(run: RunResult) -> None:
    assert not offered(run, "max_steps=10", "max_steps=11", Applicability.SAFE, gradient_checkpointing=True)


def test_a_file_that_no_longer_parses_is_not(run: RunResult) -> None:
    assert not offered(run, "max_steps=10", "max_steps=(10", Applicability.SAFE)


@pytest.mark.parametrize(("applicability", "expected"), [(Applicability.SAFE, False), (Applicability.UNSAFE, True)])
def test_only_an_unsafe_fix_may_change_the_effective_batch(
    run: RunResult, applicability: Applicability, expected: bool
) -> None:
    assert offered(run, "size=4", "size=2", applicability, micro_batch_size=2) is expected


def test_a_run_that_fits_worse_afterwards_is_not(run: RunResult) -> None:
    assert not offered(run, "size=4", "size=4096", Applicability.UNSAFE, micro_batch_size=4096)


def test_edits_that_collide_are_not(run: RunResult) -> None:
    document = run.run.documents[0]
    edits = tuple(FileEdit(document.path, Edit(Span(0, 4), text), document) for text in ("a", "b"))
    finding = Finding("a-rule", "LF000", Severity.WARNING, "wrong", Place(document, Span(0, 4)))
    finding = replace(finding, fix=Fix("mend it", Applicability.SAFE, edits))
    assert Confirmation([run], Workspace(), OPTIONS).of([finding]).refused == 1


def test_a_run_that_has_the_same_values_from_another_place_is_asked_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One launch states the batch, the other takes the script's default, which the fix changes."""
    monkeypatch.chdir(tmp_path)
    parsed = (
        'import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument("--batch", type=int, default=4)\n'
        "options = parser.parse_args()\n"
    )
    Path("train.py").write_text(parsed + SCRIPT.replace("size=4", "size=options.batch"))
    Path("stated.sh").write_text("python train.py --batch 4\n")
    Path("left.sh").write_text("python train.py\n")
    runs = load_runs([Path("stated.sh"), Path("left.sh")], OPTIONS)[1]
    own = next(each for each in runs if each.run.id.startswith("stated.sh"))
    assert [each.run.value("micro_batch_size") for each in runs] == [4, 4]
    document = next(each for each in own.run.documents if each.path.name == "train.py")
    start = document.text.index("default=4")
    edit = FileEdit(document.path, Edit(Span(start, start + 9), "default=4096"), document)
    place = Place(document, Span(start, start + 9))
    fix = Fix("mend it", Applicability.UNSAFE, (edit,))
    finding = Finding("a-rule", "LF000", Severity.WARNING, "wrong", place, run=own.run.id, fix=fix)
    assert Confirmation(runs, Workspace(), OPTIONS).of([finding]).refused == 1
