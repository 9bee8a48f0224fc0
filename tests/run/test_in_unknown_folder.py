"""A model's name at the end of a path of which nobody knows the beginning."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.run.in_unknown_folder import named_at_end
from tests.support import lintfit


@pytest.mark.parametrize(
    ("word", "model"),
    [
        ("$ROOT/Qwen2.5-7B-Instruct", "Qwen2.5-7B-Instruct"),
        ("${ROOT}/models/my-llama-2-7b-sft/", "models/my-llama-2-7b-sft"),
        ("$(pwd)/$1/Llama-2-7b-hf", "Llama-2-7b-hf"),
        ("$1Llama-2-7b-chat-hf", "Llama-2-7b-chat-hf"),
        ("${PREFIX}llama-2-7b-mine", None),
        ("$ROOT/checkpoint-100", None),
        ("Qwen/$NAME", None),
        ("$ROOT/${NAME}-7b", None),
        ("$MODEL", None),
    ],
)
def test_the_name_behind_the_last_reference(word: str, model: str | None) -> None:
    assert named_at_end(word) == model


SCRIPT = """\
import sys
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
from dataclasses import dataclass


@dataclass
class Own:
    model_path: str = ""
    seq_length: int = 512


own, args = HfArgumentParser((Own, TrainingArguments)).parse_args_into_dataclasses()
data = tokenizer(texts, max_length=own.seq_length, truncation=True, padding="max_length")
model = AutoModelForCausalLM.from_pretrained(own.model_path, torch_dtype="bfloat16")
Trainer(model=model, args=args, train_dataset=data).train()
"""


@pytest.mark.parametrize("front_end", ["python train.py --bf16 --model_path", "llamafactory-cli train --stage sft "
    "--do_train --finetuning_type lora --template qwen --dataset a --bf16 --model_name_or_path"])  # fmt: skip
def test_scripts_and_front_ends_alike(tmp_path: Path, front_end: str) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "run.sh").write_text(f"{front_end} $ROOT/Qwen2.5-0.5B --output_dir out\n")
    outcome = lintfit("check", "run.sh", "--gpu", "a100-80gb", "--gpus", "1", "--output-format", "json", cwd=tmp_path)
    (run,) = outcome.json["runs"]
    assert (run["verdict"], run["settings"]["model"]["value"]) == ("fits", "Qwen2.5-0.5B")
    assert run["settings"]["model"]["from"]["kind"] == "assumed"
