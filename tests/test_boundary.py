"""A mistake of this program's own costs the file or run that it concerns, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from lintfit import __main__
from lintfit.boundary import Mistakes
from lintfit.errors import LintfitError

GOOD = '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}\n'
SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
Trainer(model=model, args=TrainingArguments("out", bf16=True, per_device_train_batch_size=4)).train()
"""


def _fails(wanted: Callable[..., bool], real: Callable[..., Any]) -> Callable[..., Any]:
    """The function with a mistake in it that shows where ``wanted`` says so."""

    def failing(*arguments: Any, **named: Any) -> Any:
        if wanted(*arguments):
            raise KeyError("no\nsuch")
        return real(*arguments, **named)

    return failing


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LINTFIT_DEBUG", raising=False)
    (tmp_path / "bad.json").write_text(GOOD)
    (tmp_path / "good.json").write_text(GOOD)
    (tmp_path / "bad.py").write_text(SCRIPT)
    (tmp_path / "good.py").write_text(SCRIPT)
    (tmp_path / "run.sh").write_text("python bad.py\n")
    return tmp_path


def _run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    hardware = ("--isolated", "--gpu", "A100 80GB", "--gpus", "1", "--seq-len", "2048")
    monkeypatch.setattr("sys.argv", ["lintfit", *arguments, *hardware])
    status = __main__.run()
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def _of_bad(document: Any, *_: Any, **__: Any) -> bool:
    return document.path.stem == "bad"


def _from_bad(origin: Any, *_: Any) -> bool:
    return origin.path.name == "run.sh"


def _run_of_bad(run: Any, *_: Any, **__: Any) -> bool:
    return run.id.startswith("run.sh")


LINE = "internal error: KeyError: 'no\\nsuch'; please report it (LINTFIT_DEBUG=1 shows where)"
UNITS: dict[str, tuple[str, Callable[..., bool], str]] = {
    "reading": ("lintfit.documents.json_reader.read_json", _of_bad, "bad.json"),
    "building": ("lintfit.commands.check.build", _from_bad, "run.sh"),
    "judging": ("lintfit.commands.check.judge", _run_of_bad, "run.sh:1"),
    "planning": ("lintfit.fit.planner.plan", _run_of_bad, "run.sh:1"),
    "rule of a file": ("lintfit.checks.key_inactive_at_stage.check_file", lambda c: _of_bad(c.document), "bad.json"),
    "rule of a run": ("lintfit.checks.does_not_fit.check_run", lambda c: _run_of_bad(c.run), "run.sh:1"),
    "confirming": (
        "lintfit.fit.confirm.Confirmation._holds",
        lambda _, f, __: f.place.document.path.name == "bad.json",
        "bad.json",
    ),
}


NAMED = (".", "bad.json", "good.json")
"""What no run uses is told to who names it."""


@pytest.mark.parametrize("unit", UNITS)
def test_the_rest_is_checked(
    unit: str, tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = _run(monkeypatch, capsys, "check", *NAMED, "--output-format", "json")
    assert (status, err) == (1, "")
    whole = json.loads(out)
    target, wanted, where = UNITS[unit]
    _break(target, wanted, monkeypatch)
    status, out, err = _run(monkeypatch, capsys, "check", *NAMED, "--output-format", "json")
    assert (status, err) == (2, f"lintfit: {where}: {LINE}\n")
    left = json.loads(out)
    others = [finding for finding in whole["findings"] if finding["path"].startswith("good")]
    assert others and [finding for finding in left["findings"] if finding["path"].startswith("good")] == others
    assert [run for run in left["runs"] if run["id"] == "good.json"] == [
        run for run in whole["runs"] if run["id"] == "good.json"
    ]


def _break(target: str, wanted: Callable[..., bool], monkeypatch: pytest.MonkeyPatch) -> None:
    from pkgutil import resolve_name

    monkeypatch.setattr(target, _fails(wanted, resolve_name(target)))


@pytest.mark.parametrize("command", ["estimate", "fit"])
def test_the_other_commands_go_on_as_well(
    command: str, tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _break("lintfit.commands.check.judge", _run_of_bad, monkeypatch)
    status, out, err = _run(monkeypatch, capsys, command, ".")
    assert (status, err) == (2, f"lintfit: run.sh:1: {LINE}\n")
    assert "good.py" in out


def test_a_fix_that_cannot_be_confirmed_is_not_made(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _break(*UNITS["confirming"][:2], monkeypatch)
    status, _, err = _run(monkeypatch, capsys, "check", "bad.json", "good.json", "--fix")
    assert (status, err) == (2, f"lintfit: bad.json: {LINE}\n")
    assert (tree / "bad.json").read_text() == GOOD
    assert "offload_param" not in (tree / "good.json").read_text()


def test_whoever_looks_for_the_mistake_sees_it_where_it_is(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _break("lintfit.commands.check.judge", _run_of_bad, monkeypatch)
    monkeypatch.setenv("LINTFIT_DEBUG", "1")
    with pytest.raises(KeyError):
        _run(monkeypatch, capsys, "check", ".")


def test_what_the_user_can_mend_passes_and_so_does_the_wish_to_stop() -> None:
    def raising(error: BaseException) -> NoReturn:
        with Mistakes().end_at("x"):
            raise error
        raise AssertionError

    for error in (LintfitError("x.toml: no TOML"), KeyboardInterrupt(), SystemExit(3)):
        with pytest.raises(type(error)):
            raising(error)


def test_a_mistake_is_told_once() -> None:
    mistakes = Mistakes()
    for where in ("a.py", "b.py", "a.py"):
        with mistakes.end_at(where):
            raise MemoryError
    assert [line.partition(":")[0] for line in mistakes.lines] == ["a.py", "b.py"]
