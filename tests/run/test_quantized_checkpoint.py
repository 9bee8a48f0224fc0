"""A run whose model is quantised already: its own config says so, and its name where there is no config."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lintfit.catalog import models
from tests.support import lintfit

SCRIPT = """\
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("{name}", dtype="bfloat16")
model = get_peft_model(model, LoraConfig(r=8, target_modules=["q_proj"]))
args = TrainingArguments("out", per_device_train_batch_size=1, gradient_checkpointing=True, bf16=True)
Trainer(model, args).train()
"""
DOUBLE = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}


def _run(folder: Path, name: str, *options: str) -> dict[str, Any]:
    (folder / "train.py").write_text(SCRIPT.format(name=name))
    outcome = lintfit("check", "train.py", "--isolated", "--output-format", "json", *options, cwd=folder)
    found: dict[str, Any] = outcome.json["runs"][0]
    return found


def _folder(folder: Path, name: str, section: object) -> None:
    config, _ = models.config_of("meta-llama/Llama-3.1-8B")
    (folder / name).mkdir()
    (folder / name / "config.json").write_text(json.dumps({**config, "quantization_config": section}))


@pytest.mark.parametrize(
    ("name", "section", "quantization", "why"),
    [
        ("plain", DOUBLE, "nf4-double", "config.json says that it is quantized"),
        ("Llama-AWQ", DOUBLE, "nf4-double", "config.json says that it is quantized"),
        ("Llama-GPTQ-Int4", None, "gptq-int4", "train.py"),
        ("plain", {"quant_method": "quanto"}, None, "config.json says that it is quantized"),
    ],
)
def test_where_the_quantization_comes_from(
    tmp_path: Path, name: str, section: object, quantization: str | None, why: str
) -> None:
    _folder(tmp_path, name, section)
    run = _run(tmp_path, name, "--gpu", "H200")
    assert run["settings"]["quantization"]["value"] == quantization
    assert why in str(run["settings"]["quantization"]["from"])
    assert run["verdict"] == ("unknown" if quantization is None else "fits")


def test_a_config_without_quantization_says_nothing(tmp_path: Path) -> None:
    _folder(tmp_path, "plain", {"quant_method": "mxfp4"})
    assert "quantization" not in _run(tmp_path, "plain")["settings"]


def test_fp8_by_name_is_never_said_to_fit(tmp_path: Path) -> None:
    assert _run(tmp_path, "Qwen/Qwen3-8B-FP8", "--gpu", "H200")["verdict"] == "unknown"
