"""A length that is only a cap says of no run that it does not fit, as long as short samples would."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.support import lintfit

RECIPE = """\
base_model: Qwen/Qwen2.5-7B
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
sequence_len: 16384
micro_batch_size: 1
adapter: lora
lora_r: 8
lora_target_linear: true
optimizer: adamw_torch
bf16: true
gradient_checkpointing: true
"""


def judged(folder: Path, recipe: str, *flags: str) -> dict[str, Any]:
    (folder / "recipe.yml").write_text(recipe)
    command = ("check", "recipe.yml", "--gpu", "rtx3090", "--gpus", "1", *flags, "--output-format", "json")
    found: dict[str, Any] = lintfit(*command, cwd=folder).json["runs"][0]
    return found


def test_a_cap_is_no_length(tmp_path: Path) -> None:
    found = judged(tmp_path, RECIPE)
    assert found["verdict"] == "tight"
    said = re.search(
        r"samples of no more than (\d+) tokens \(16384 are a cap", "|".join(found["estimate"]["assumptions"])
    )
    assert said is not None
    longest = int(said[1])
    assert judged(tmp_path, RECIPE, "--seq-len", str(longest))["verdict"] != "does-not-fit"
    assert judged(tmp_path, RECIPE, "--seq-len", str(longest + 256))["verdict"] == "does-not-fit"


def test_short_samples_may_be_too_much(tmp_path: Path) -> None:
    assert judged(tmp_path, RECIPE.replace("micro_batch_size: 1", "micro_batch_size: 32"))["verdict"] == "does-not-fit"


def test_what_is_filled_up_has_its_length(tmp_path: Path) -> None:
    for filled in ("sample_packing: true\nflash_attention: true\n", "pad_to_sequence_len: true\n"):
        assert judged(tmp_path, RECIPE + filled)["verdict"] == "does-not-fit"


def test_weights_alone_may_be_too_much(tmp_path: Path) -> None:
    assert judged(tmp_path, RECIPE.replace("2.5-7B", "2.5-32B"))["verdict"] == "does-not-fit"


SWIFT = "swift sft --model Qwen/Qwen2.5-7B --tuner_type lora --dataset d --output_dir out --attn_impl flash_attn "


def test_joined_samples_are_as_long_as_all_of_them_together(tmp_path: Path) -> None:
    """32 samples of 1034 tokens do not fit; 32 short ones, one behind the other, do."""
    flags = SWIFT + "--max_length 4096 --per_device_train_batch_size 32 --use_liger_kernel true"

    def verdict(more: str) -> str:
        (tmp_path / "run.sh").write_text(f"{flags} {more}\n")
        command = ("check", "run.sh", "--gpu", "rtx3090", "--gpus", "1", "--output-format", "json")
        found: str = lintfit(*command, cwd=tmp_path).json["runs"][0]["verdict"]
        return found

    assert verdict("") == "does-not-fit"
    assert verdict("--padding_free true") == "tight"


SCRIPT = """\
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-1.5B")
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B", torch_dtype=torch.bfloat16)
data = load().map(lambda row: tokenizer(row["text"], {cut}max_length=8192))
Trainer(model=model, args=args, train_dataset=data).train()
"""
LAUNCH = "torchrun --nproc_per_node 1 train.py --bf16 --per_device_train_batch_size 2 --optim adamw_8bit"


def script_run(folder: Path, cut: str, flags: str = "") -> dict[str, Any]:
    (folder / "train.py").write_text(SCRIPT.replace("{cut}", cut))
    (folder / "run.sh").write_text(f"{LAUNCH} --gradient_checkpointing {flags}\n")
    command = ("check", "run.sh", "--gpu", "rtx3090", "--gpus", "1", "--output-format", "json")
    found: dict[str, Any] = lintfit(*command, cwd=folder).json["runs"][0]
    return found


def test_a_script_that_cuts_has_a_cap_and_one_that_pads_to_it_a_length(tmp_path: Path) -> None:
    assert script_run(tmp_path, "truncation=True, ")["verdict"] == "tight"
    assert script_run(tmp_path, 'truncation=True, padding="max_length", ')["verdict"] == "does-not-fit"


def test_samples_of_pictures_are_as_long_as_what_they_show(tmp_path: Path) -> None:
    assert script_run(tmp_path, "")["verdict"] == "does-not-fit"
    fields = "from dataclasses import dataclass\n\n@dataclass\nclass Data:\n    image_folder: str = ''\n\n"
    parsed = SCRIPT.replace("(args,)", "(args, _)").replace("(TrainingArguments)", "((TrainingArguments, Data))")
    (tmp_path / "train.py").write_text(fields + parsed.replace("{cut}", ""))
    (tmp_path / "run.sh").write_text(f"{LAUNCH} --gradient_checkpointing --image_folder pictures\n")
    command = ("check", "run.sh", "--gpu", "rtx3090", "--gpus", "1", "--output-format", "json")
    assert lintfit(*command, cwd=tmp_path).json["runs"][0]["verdict"] == "tight"


def test_what_short_samples_take_is_told_and_not_what_the_longest_may(tmp_path: Path) -> None:
    larger = "micro_batch_size: 32\ngradient_accumulation_steps: 1"
    (tmp_path / "recipe.yml").write_text(RECIPE.replace("micro_batch_size: 1", larger))
    found = lintfit("check", "recipe.yml", "--gpu", "rtx3090", "--gpus", "1", "--output-format", "json", cwd=tmp_path)
    (said,) = (each["message"] for each in found.json["findings"] if each["rule"] == "does-not-fit")
    assert "per GPU with samples of 256 tokens" in said and "16,384" not in said
