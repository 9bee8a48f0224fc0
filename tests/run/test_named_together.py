"""A script and the file of its arguments, named together or by a plain ``python`` line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

BY_JSON = """\
import sys

from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

from dataclasses import dataclass


@dataclass
class ModelArguments:
    model_name_or_path: str = ""


parser = HfArgumentParser((ModelArguments, TrainingArguments))
if len(sys.argv) == 2 and sys.argv[1].endswith(".json"):
    model_args, args = parser.parse_json_file(sys.argv[1])
else:
    model_args, args = parser.parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path)
Trainer(model=model, args=args).train()
"""
BY_TRL = """\
from transformers import AutoModelForCausalLM
from trl import ModelConfig, ScriptArguments, SFTConfig, SFTTrainer, TrlParser

script_args, args, model_args = TrlParser((ScriptArguments, SFTConfig, ModelConfig)).parse_args_and_config()
model = AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path)
SFTTrainer(model=model, args=args).train()
"""
BY_FLAGS = """\
import argparse

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--model_name_or_path")
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained(args.model_name_or_path)
Trainer(model=model, args=TrainingArguments("out")).train()
"""
ARGUMENTS = {"model_name_or_path": "Qwen/Qwen2.5-1.5B", "output_dir": "out", "per_device_train_batch_size": 2}
HARDWARE = ("--gpu", "RTX 4090", "--gpus", "1", "--seq-len", "2048")


def _runs(folder: Path, *names: str) -> list[dict[str, Any]]:
    outcome = lintfit("check", *names, *HARDWARE, "--output-format", "json", cwd=folder)
    assert outcome.err == ""
    runs: list[dict[str, Any]] = outcome.json["runs"]
    return runs


def _value(run: dict[str, Any], name: str) -> object:
    return run["settings"][name]["value"]


@pytest.mark.parametrize(("script", "name"), [(BY_JSON, "args.json"), (BY_TRL, "args.yaml")])
def test_a_script_is_handed_the_arguments_that_are_named_beside_it(tmp_path: Path, script: str, name: str) -> None:
    (tmp_path / "run.py").write_text(script)
    (tmp_path / name).write_text(json.dumps(ARGUMENTS))
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}')
    (alone,) = _runs(tmp_path, "run.py")
    (run,) = _runs(tmp_path, "run.py", name, "ds.json")
    assert alone["verdict"] == "unknown" and run["verdict"] == "does-not-fit"
    assert (_value(run, "model"), _value(run, "micro_batch_size")) == ("Qwen/Qwen2.5-1.5B", 2)
    assert _value(run, "zero_stage") == 2
    assert run["settings"]["micro_batch_size"]["from"]["path"] == name


def test_a_fix_is_written_into_the_arguments(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(BY_JSON)
    (tmp_path / "args.json").write_text(json.dumps(ARGUMENTS, indent=2))
    outcome = lintfit("check", "run.py", "args.json", *HARDWARE, "--fix", cwd=tmp_path)
    fixed = json.loads((tmp_path / "args.json").read_text())
    assert outcome.status == 0 and fixed["gradient_checkpointing"] is True
    assert fixed.items() > ARGUMENTS.items()
    assert (tmp_path / "run.py").read_text() == BY_JSON


def test_arguments_that_a_script_does_not_take_or_that_are_several_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "flags.py").write_text(BY_FLAGS)
    (tmp_path / "run.py").write_text(BY_JSON)
    for name in ("first.json", "second.json"):
        (tmp_path / name).write_text(json.dumps(ARGUMENTS))
    for names in (("flags.py", "first.json"), ("run.py", "first.json", "second.json")):
        (run,) = _runs(tmp_path, *names)
        assert run["verdict"] == "unknown" and not run["settings"].get("model", {}).get("value"), names


@pytest.mark.parametrize(
    ("script", "words", "number"),
    [
        (BY_JSON, "args.json", 1),
        (BY_JSON, "--do_predict --output_dir out", 0),
        ("import torch\n\nprint(torch.__version__)\n", "args.json", 0),
    ],
)
def test_of_a_plain_line_whose_words_do_not_tell_the_script_says_whether_it_trains(
    tmp_path: Path, script: str, words: str, number: int
) -> None:
    (tmp_path / "experiment.py").write_text(script)
    (tmp_path / "args.json").write_text(json.dumps(ARGUMENTS))
    (tmp_path / "go.sh").write_text(f"#!/bin/sh\npython experiment.py {words}\n")
    runs = _runs(tmp_path, "go.sh")
    assert len(runs) == number
    assert [(run["id"], _value(run, "model")) for run in runs] == [("go.sh:2", "Qwen/Qwen2.5-1.5B")][:number]
