"""Data sets of text alone: a vision-language model that is trained on them sees no images."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import lintfit

SWIFT = (
    "swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --tuner_type lora --dataset {} --max_length 2048 --output_dir out\n"
)
LLAMAFACTORY = """\
model_name_or_path: Qwen/Qwen2.5-VL-7B-Instruct
stage: sft
do_train: true
finetuning_type: lora
lora_target: all
dataset: {}
template: qwen2_vl
cutoff_len: 2048
output_dir: out
per_device_train_batch_size: 1
bf16: true
"""


@pytest.mark.parametrize(
    ("datasets", "images"),
    [
        ("AI-ModelScope/alpaca-gpt4-data-zh#500 swift/self-cognition:qwen#100", 0),
        ("'AI-ModelScope/alpaca-gpt4-data-en#500'", 0),
        ("AI-ModelScope/LaTeX_OCR:human_handwrite#2000", None),
        ("AI-ModelScope/alpaca-gpt4-data-zh mine/pictures", None),
        ("alpaca.jsonl", None),  # a file of somebody's own
    ],
)
def test_ms_swifts_names(tmp_path: Path, datasets: str, images: int | None) -> None:
    (tmp_path / "run.sh").write_text(SWIFT.format(datasets))
    assert stated(tmp_path, "run.sh") == images


@pytest.mark.parametrize(
    ("datasets", "images"), [("identity,alpaca_en_demo", 0), ("mllm_demo,identity", None), ("alpaca_en_visual", None)]
)
def test_llamafactorys_names(tmp_path: Path, datasets: str, images: int | None) -> None:
    (tmp_path / "recipe.yaml").write_text(LLAMAFACTORY.format(datasets))
    assert stated(tmp_path, "recipe.yaml") == images


def test_what_the_user_says_counts(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(LLAMAFACTORY.format("identity"))
    assert stated(tmp_path, "recipe.yaml", "--images", "2") == 2


def stated(folder: Path, name: str, *flags: str) -> int | None:
    command = ("check", name, "--gpu", "a100-80gb", "--gpus", "1", "--output-format", "json")
    (run,) = lintfit(*command, *flags, cwd=folder).json["runs"]
    setting = run["settings"].get("images")
    return None if setting is None else setting["value"]
