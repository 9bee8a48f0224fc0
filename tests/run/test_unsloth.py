"""What Unsloth does that is not counted leaves a run without a verdict, and says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import lintfit

SFT = """\
from unsloth import {owner}
from trl import SFTConfig, SFTTrainer
model, tokenizer = {owner}.from_pretrained("{model}", max_seq_length=1024{load})
model = {owner}.get_peft_model(model, r=8, target_modules=["q_proj", "v_proj"])
SFTTrainer(model=model, args=SFTConfig(per_device_train_batch_size=1), train_dataset=data).train()
"""


def run_of(folder: Path, gpu: str, model: str, load: str = "", owner: str = "FastLanguageModel") -> Any:
    (folder / "train.py").write_text(SFT.format(model=model, load=load, owner=owner), "utf-8")
    flags = ("--gpu", gpu, "--gpus", "1", "--versions", "transformers=4.56.2,trl=0.22.2", "--output-format", "json")
    (run,) = lintfit("check", "train.py", *flags, cwd=folder).json["runs"]
    return run


def test_a_plain_load_has_a_verdict(tmp_path: Path) -> None:
    run = run_of(tmp_path, "T4", "unsloth/Qwen3-0.6B")
    assert (run["verdict"], run["settings"]["mixed_precision"]["value"]) == ("fits", "fp16")


@pytest.mark.parametrize(
    ("model", "load", "reason"),
    [
        ("unsloth/gpt-oss-20b", "", "the experts of gpt_oss as Unsloth quantizes them"),
        ("unsloth/Qwen3-0.6B", ", fast_inference=True", "vLLM within Unsloth"),
    ],
)
def test_what_is_not_counted_is_said(tmp_path: Path, model: str, load: str, reason: str) -> None:
    run = run_of(tmp_path, "A100", model, load)
    assert run["verdict"] == "unknown"
    assert any(reason in each for each in run["unknown"])


@pytest.mark.parametrize(
    ("gpu", "dtype", "mixed"), [("T4", "", "no"), ("A100", "", "bf16"), ("T4", ', dtype="float16"', "fp16")]
)
def test_a_model_that_overflows_in_float16_trains_in_float32(tmp_path: Path, gpu: str, dtype: str, mixed: str) -> None:
    run = run_of(tmp_path, gpu, "unsloth/gemma-3-1b-it", dtype, "FastModel")
    assert run["settings"]["mixed_precision"]["value"] == mixed


def test_a_layer_that_is_run_again_keeps_what_its_own_kernels_keep(tmp_path: Path) -> None:
    """65,536 tokens of an 8B model: 9 GiB for one layer, not the 21 GiB of transformers' code, nor any fp32 norms."""
    text = SFT.replace("1024", "2048").replace("train_batch_size=1", "train_batch_size=32")
    text = text.replace(', target_modules=["q_proj", "v_proj"]', ', use_gradient_checkpointing="unsloth"{dropout}')
    peaks = []
    for dropout in ("", ", lora_dropout=0.1"):
        said = text.format(
            model="unsloth/Meta-Llama-3.1-8B-bnb-4bit", load="", owner="FastLanguageModel", dropout=dropout
        )
        (tmp_path / "train.py").write_text(said, "utf-8")
        flags = ("--gpu", "3090", "--gpus", "1", "--output-format", "json")
        (run,) = lintfit("check", "train.py", *flags, cwd=tmp_path).json["runs"]
        peaks.append(run["estimate"]["peak_bytes"]["likely"] / 2**30)
    assert 14 < peaks[0] < 20
    assert peaks[1] > 23
