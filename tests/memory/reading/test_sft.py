"""``trainer: "sft"``: what TRL's SFT trainer takes by its version, and that a script of it comes to the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lintfit.commands.check import load_runs
from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Verdict
from lintfit.memory.spec import Spec
from lintfit.options.model import Options

QWEN: dict[str, Any] = {"model": "Qwen/Qwen2.5-1.5B", "gpu": "RTX 4090", "trainer": "sft"}


def sft(**more: Any) -> Spec:
    return spec_from_mapping({**QWEN, **more})


def test_the_defaults_of_the_newest() -> None:
    spec = sft()
    assert (spec.gradient_checkpointing, spec.mixed_precision, spec.loss) == (True, "bf16", "chunked")
    assert (spec.seq_len, spec.trainer, spec.front_end) == (1024, "causal-lm", "transformers")
    lines = estimate(spec).assumptions
    assert any(line.startswith("gradient checkpointing on (not stated") for line in lines)
    assert any(line.startswith("sequence length 1024 (not stated") for line in lines)


def test_what_is_stated_wins() -> None:
    stated = {"gradient_checkpointing": False, "mixed_precision": "no", "loss": "liger", "seq_len": 512}
    spec = sft(**stated)
    assert {name: getattr(spec, name) for name in stated} == stated


def test_versions() -> None:
    older = sft(versions={"trl": "0.15.2"})
    assert (older.gradient_checkpointing, older.mixed_precision, older.loss) == (False, "no", "full")
    assert sft(versions={"trl": "0.22.0"}).gradient_checkpointing is True
    assert sft(versions={"trl": "0.21.0"}).gradient_checkpointing is False


def test_its_loss_is_nobody_elses() -> None:
    """A chunked loss of nobody knows whom may hold its chunks; this one's does not."""
    said = {**QWEN, "trainer": "causal-lm", "loss": "chunked", "gradient_checkpointing": True}
    unsaid = spec_from_mapping({**said, "mixed_precision": "bf16", "seq_len": 1024})
    assert estimate(sft()).peak.likely == estimate(unsaid).peak.likely
    assert estimate(sft()).peak.high < estimate(unsaid).peak.high


def test_images_are_not_cut() -> None:
    seen = spec_from_mapping({"model": "HuggingFaceTB/SmolVLM-Instruct", "trainer": "sft", "images": 1})
    assert seen.seq_len == spec_from_mapping({"model": "HuggingFaceTB/SmolVLM-Instruct", "images": 1}).seq_len


def test_smolvlm_of_the_cookbook() -> None:
    """huggingface/cookbook fine_tuning_smol_vlm_sft_trl: trains on an L4 with TRL 0.22."""
    run = {
        "model": "HuggingFaceTB/SmolVLM-Instruct", "gpu": "L4", "method": "lora", "quantization": "nf4-double",
        "weights_dtype": "bf16", "mixed_precision": "bf16", "lora_rank": 8, "lora_dropout": 0.1,
        "lora_targets": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
        "micro_batch_size": 4, "images": 1, "attention": "flash_attention_2", "evaluation": {"batch_size": 0},
        "versions": {"trl": "0.22.0", "peft": "0.17.1", "bitsandbytes": "0.47.0"},
    }  # fmt: skip
    assert estimate(spec_from_mapping(run)).verdict is Verdict.DOES_NOT_FIT
    assert estimate(spec_from_mapping({**run, "trainer": "sft"})).verdict is Verdict.FITS


@pytest.mark.parametrize("version", ["0.15.2", "0.21.0", "0.22.0", "0.24.0", "1.8.0", None])
def test_a_script_comes_to_the_same(tmp_path: Path, version: str | None) -> None:
    (tmp_path / "train.py").write_text(
        "from transformers import AutoModelForCausalLM\nfrom trl import SFTConfig, SFTTrainer\n"
        "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-1.5B', torch_dtype='bfloat16')\n"
        "SFTTrainer(model=model, args=SFTConfig('out', max_length=1024)).train()\n"
    )
    if version is not None:
        (tmp_path / "requirements.txt").write_text(f"trl=={version}\n")
    _, (loaded,) = load_runs((tmp_path / "train.py",), Options())
    read = loaded.run.spec
    assert read is not None
    spec = sft(weights_dtype="bf16", **({"versions": {"trl": version}} if version else {}))
    for name in ("gradient_checkpointing", "mixed_precision", "loss", "seq_len", "trainer", "front_end"):
        assert (name, getattr(read, name)) == (name, getattr(spec, name))
