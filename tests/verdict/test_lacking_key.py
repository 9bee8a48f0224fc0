"""A script that asks a dict for a key that it has not stops before it loads its model: it has no verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.commands.check import check
from lintfit.findings.model import Finding
from lintfit.options.model import Options

SCRIPT = """\
import argparse

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

FORMS = {{"Qwen/Qwen2.5-7B": "a", "Qwen/Qwen2.5-14B": "b"}}
parser = argparse.ArgumentParser()
parser.add_argument("--model", default="Qwen/Qwen2.5-32B")
options = parser.parse_args()
{line}
model = AutoModelForCausalLM.from_pretrained(options.model)
{after}
Trainer(model=model, args=TrainingArguments("out"), train_dataset=load()).train()
"""


def _found(folder: Path, flags: str, line: str, after: str = "") -> dict[str, Finding]:
    (folder / "train.py").write_text(SCRIPT.format(line=line, after=after))
    (folder / "run.sh").write_text(f"python train.py {flags}\n")
    (folder / "lintfit.toml").write_text('gpu = "RTX 3090"\nselect = ["does-not-fit", "memory-unknown"]\n')
    return {finding.rule: finding for finding in check([folder], Options()).findings}


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_key_that_the_dict_has_not(tmp_path: Path) -> None:
    found = _found(tmp_path, "", "form = FORMS[options.model]")
    assert list(found) == ["memory-unknown"]
    message, place = found["memory-unknown"].message, found["memory-unknown"].place
    assert place.text == "FORMS[options.model]"
    assert "the dict has no such key, and the script stops with KeyError" in message


@pytest.mark.parametrize(
    ("flags", "line", "after"),
    [
        ("--model Qwen/Qwen2.5-14B", "form = FORMS[options.model]", ""),
        ("", "form = FORMS.get(options.model)", ""),
        ("", "if options.model in FORMS:\n    form = FORMS[options.model]", ""),
        ("", "try:\n    form = FORMS[options.model]\nexcept KeyError:\n    form = None", ""),
        ("", "FORMS[options.model] = 'c'\nform = FORMS[options.model]", ""),
        ("", "FORMS.update(more())\nform = FORMS[options.model]", ""),
        ("", "if unknown():\n    form = FORMS[options.model]", ""),
        ("", "form = [FORMS[name] for name in FORMS]", ""),
        ("", "def later():\n    return FORMS[options.model]", ""),
        ("", "from forms import FORMS\nform = FORMS[options.model]", ""),
        ("", "", "form = FORMS[options.model]"),  # what comes behind the load is not looked at
    ],
)
def test_keys_that_are_there_or_may_be(tmp_path: Path, flags: str, line: str, after: str) -> None:
    assert list(_found(tmp_path, flags, line, after)) == ["does-not-fit"]
