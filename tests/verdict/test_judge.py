"""What is said of a verdict where the files leave something open."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import lintfit

SCRIPT = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

from data import dataset

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", torch_dtype="bfloat16")
args = TrainingArguments(output_dir="out", bf16=True, per_device_train_batch_size=1, gradient_checkpointing=True)
Trainer(model=model, args=args, train_dataset=dataset).train()
"""


def of_length(folder: Path, *flags: str) -> tuple[str, list[str]]:
    """The verdict on one 3090, and what is assumed of the length beyond which it may not hold."""
    (folder / "train.py").write_text(SCRIPT)
    found = lintfit("check", "train.py", *flags, "--gpu", "3090", "--gpus", "1", "--output-format", "json", cwd=folder)
    (run,) = found.json["runs"]
    lines = [line for line in run["estimate"]["assumptions"] if line.startswith("sequences of")]
    return run["estimate"]["verdict"], lines


def test_a_length_that_nobody_states_says_up_to_where_the_run_fits(tmp_path: Path) -> None:
    verdict, (line,) = of_length(tmp_path)
    said = re.match(r"sequences of no more than (\d+) tokens \(no length is stated; longer ones may not fit", line)
    assert verdict == "fits" and said is not None
    assert of_length(tmp_path, "--seq-len", said[1])[0] == "fits"
    assert of_length(tmp_path, "--seq-len", str(2 * int(said[1])))[0] != "fits"
    shown = lintfit("check", "train.py", "--gpu", "3090", "--gpus", "1", cwd=tmp_path).out
    assert shown.startswith(f"train.py: fits with sequences of up to {said[1]} tokens\n")


CUT = """
def tokenize(rows):
    return tokenizer(rows["text"], max_length=max(len(row) for row in corpus))
dataset = dataset.map(tokenize)
args ="""


@pytest.mark.parametrize("cut", [CUT, "args ="], ids=["a length that the script works out", "none"])
def test_only_the_length_decides_where_short_sequences_fit(tmp_path: Path, cut: str) -> None:
    """A batch of 32 takes too much with 512 tokens, and not with 62, as a public script has them."""
    plain = SCRIPT.replace("size=1, gradient_checkpointing=True", "size=32, gradient_checkpointing=False")
    (tmp_path / "train.py").write_text(plain.replace("args =", cut))

    def verdict(*flags: str) -> str:
        command = ("check", "train.py", "--gpu", "3090", "--gpus", "1", "--output-format", "json")
        found: str = lintfit(*command, *flags, cwd=tmp_path).json["runs"][0]["estimate"]["verdict"]
        return found

    assert verdict() == "unknown"
    assert verdict("--seq-len", "512") == "does-not-fit"
    assert verdict("--seq-len", "62") in ("fits", "tight")


def test_a_stated_length_is_no_assumption(tmp_path: Path) -> None:
    assert of_length(tmp_path, "--seq-len", "2048") == ("fits", [])


def test_what_compiling_saves_is_an_assumption(tmp_path: Path) -> None:
    def assumptions() -> str:
        shown = lintfit("check", "train.py", "--gpu", "3090", "--output-format", "json", cwd=tmp_path)
        return " ".join(shown.json["runs"][0]["estimate"]["assumptions"])

    (tmp_path / "train.py").write_text(SCRIPT)
    assert "compile" not in assumptions()
    (tmp_path / "train.py").write_text(SCRIPT.replace("bf16=True", "bf16=True, torch_compile=True"))
    assert "not compiled" in assumptions()


FROZEN = "for layer in model.model.layers[:deep()]:\n    layer.requires_grad_(False)\nargs ="


def test_what_is_trained_of_a_partly_frozen_model_is_counted(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.replace("args =", FROZEN.replace("deep()", "20")))
    command = ("check", "train.py", "--seq-len", "1024", "--gpus", "1", "--gpu", "RTX 2060")
    run = lintfit(*command, "--output-format", "json", cwd=tmp_path).json["runs"][0]
    assert run["settings"]["frozen_modules"]["value"] == ["model.layers[:20]"]
    assert run["verdict"] != "unknown"
    assert "full fine-tuning of" in lintfit(*command, cwd=tmp_path).out


def test_a_run_whose_model_is_partly_frozen_fits_where_all_of_it_would(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.replace("args =", FROZEN))
    command = ("check", "train.py", "--seq-len", "1024", "--gpus", "1")
    found = lintfit(*command, "--gpu", "3090", "--output-format", "json", cwd=tmp_path).json["runs"][0]["estimate"]
    assert found["verdict"] == "fits"
    assert "a part of it is frozen, which takes less" in found["assumptions"][0]
    shown = " ".join(lintfit(*command, "--gpu", "RTX 2060", cwd=tmp_path).out.split())
    assert "what is trained is not known" in shown and shown.startswith("train.py: not judged ")
    full = " ".join(lintfit(*command, "--gpu", "RTX 2060", "--verbose", cwd=tmp_path).out.split())
    assert "memory-unknown" in full and "a part of the model is frozen here" in full


SHARED = """\
from dataclasses import dataclass

from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments


@dataclass
class ModelArguments:
    model_name: str = "gpt2"


names, args = HfArgumentParser((ModelArguments, TrainingArguments)).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained(names.model_name, torch_dtype="bfloat16")
Trainer(model=model, args=args).train()
"""


def test_a_plan_leaves_what_another_run_reads_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SHARED)
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}}')
    for name, size in (("big", "7B"), ("small", "0.5B")):
        flags = f"--model_name Qwen/Qwen2.5-{size} --output_dir out --bf16 --gradient_checkpointing --deepspeed ds.json"
        (tmp_path / f"{name}.sh").write_text(f"deepspeed --num_gpus 8 train.py {flags}\n")
    command = ("check", ".", "--gpu", "3090", "--seq-len", "512")
    shared = lintfit(*command, cwd=tmp_path).out
    assert "create ds_zero3" in shared and "that this changes" not in shared, "the other run's config stays as it is"
    (tmp_path / "small.sh").unlink()
    shown = lintfit(*command, cwd=tmp_path).out
    assert "Plan: " in shown and "that this changes" not in shown
