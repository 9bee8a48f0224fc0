"""Library defaults by version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lintfit.catalog.defaults import default, ever_accepted, fields, last_version, lora_targets, version_key, versions

SHARED = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.mark.parametrize(
    ("library", "cls", "field", "version", "value"),
    [
        ("transformers", "TrainingArguments", "per_device_train_batch_size", None, 8),
        ("transformers", "TrainingArguments", "optim", "4.46.3", "adamw_torch"),
        ("transformers", "TrainingArguments", "optim", None, "adamw_torch_fused"),
        ("transformers", "TrainingArguments", "gradient_checkpointing", "4.57.6", False),
        ("transformers", "BitsAndBytesConfig", "bnb_4bit_quant_type", None, "fp4"),
        ("trl", "SFTConfig", "gradient_checkpointing", "0.19.1", None),
        ("trl", "SFTConfig", "gradient_checkpointing", "0.21.0", None),
        ("trl", "SFTConfig", "gradient_checkpointing", "0.22.0", True),
        ("trl", "SFTConfig", "gradient_checkpointing", "0.24.0", True),
        ("trl", "RewardConfig", "gradient_checkpointing", "0.21.0", None),
        ("trl", "RewardConfig", "gradient_checkpointing", "0.23.0", True),
        ("trl", "SFTConfig", "bf16", "0.18.1", False),
        ("trl", "SFTConfig", "bf16", "0.19.0", None),
        ("trl", "SFTConfig", "gradient_checkpointing", None, True),
        ("trl", "SFTConfig", "max_grad_norm", None, 1.0),
        ("trl", "GRPOConfig", "max_completion_length", "1.5.0", 256),
        ("trl", "GRPOConfig", "max_completion_length", None, 512),
        ("trl", "GRPOConfig", "vllm_mode", "0.24.0", "server"),
        ("trl", "GRPOConfig", "vllm_mode", "1.0.0", "colocate"),
        ("trl", "GRPOConfig", "beta", "0.18.2", 0.04),
        ("trl", "GRPOConfig", "beta", "0.19.0", 0.0),
        ("trl", "GRPOConfig", "beta", None, 0.0),
        ("trl", "RLOOConfig", "beta", "0.22.0", 0.05),
        ("trl", "RewardConfig", "learning_rate", None, 1e-4),
        ("peft", "LoraConfig", "r", None, 8),
        ("deepspeed", "zero_optimization", "reduce_bucket_size", "0.10.3", 500_000_000),
        ("deepspeed", "zero_optimization", "stage3_param_persistence_threshold", None, 100_000),
        ("deepspeed", "offload_optimizer", "pin_memory", "0.18.2", False),
        ("deepspeed", "offload_optimizer", "pin_memory", "v0.19.6", True),
        ("deepspeed", "config", "gradient_clipping", "0.18", 0.0),
        ("deepspeed", "config", "gradient_clipping", None, 1.0),
    ],
)
def test_values(library: str, cls: str, field: str, version: str | None, value: Any) -> None:
    found = default(library, cls, field, version)
    assert found is not None
    assert found.value == value
    assert found.since.startswith(("transformers", library))


def test_inherited_fields_follow_the_version_of_transformers() -> None:
    old = default("trl", "SFTConfig", "optim", "0.19.1", base_version="4.46.3")
    assert old is not None
    assert (old.value, old.since) == ("adamw_torch", "transformers 4.46.3")


def test_required_and_unknown_fields() -> None:
    found = default("transformers", "TrainingArguments", "output_dir", "4.46.3")
    assert found is not None
    assert found.required
    assert default("transformers", "TrainingArguments", "evaluation_strategey") is None
    assert default("transformers", "NoSuchArguments", "optim") is None
    assert default("nothing", "TrainingArguments", "optim") is None


def test_accepted_names_follow_the_version() -> None:
    assert "group_by_length" in fields("transformers", "TrainingArguments", "5.0.0")
    assert "group_by_length" not in fields("transformers", "TrainingArguments", "5.6.2")
    assert "activation_checkpointing" in fields("transformers", "TrainingArguments")
    assert "max_prompt_length" in fields("trl", "DPOConfig", "0.24.0")
    assert "max_prompt_length" not in fields("trl", "DPOConfig")
    assert "max_prompt_length" in ever_accepted("trl", "DPOConfig")
    assert "learning_rate" in fields("trl", "KTOConfig")
    assert fields("trl", "NoSuchConfig") == frozenset()


def test_peft_default_targets() -> None:
    assert lora_targets("llama") == ("q_proj", "v_proj")
    assert lora_targets("gpt2") == ("c_attn",)
    assert lora_targets("qwen3_moe") is None


@pytest.mark.parametrize(
    ("text", "key"), [("4.57.0.dev0", (4, 57, 0)), ("v0.19.5", (0, 19, 5)), ("5", (5,)), ("", ()), ("main", ())]
)
def test_version_numbers(text: str, key: tuple[int, ...]) -> None:
    assert version_key(text) == key


def test_versions_are_in_order() -> None:
    for library, cls in (
        ("transformers", "TrainingArguments"),
        ("trl", "SFTConfig"),
        ("deepspeed", "zero_optimization"),
    ):
        studied = versions(library, cls)
        assert list(studied) == sorted(studied, key=version_key)
        assert len(studied) > 5
    assert versions("trl", "NoSuchConfig") == ()


def test_the_newest_version_that_has_a_field() -> None:
    assert last_version("trl", "SFTConfig", "max_seq_length") == "0.19.1"
    assert last_version("trl", "SFTConfig", "max_length") == versions("trl", "SFTConfig")[-1]
    assert last_version("trl", "SFTConfig", "no_such_field") == last_version("trl", "NoSuchConfig", "max_length") == ""


def test_newest_defaults_are_those_of_the_classes() -> None:
    path = SHARED / "hf_args_defaults.json"
    if not path.is_file():
        pytest.skip("the studied defaults are not beside this checkout")
    studied = json.loads(path.read_text())
    classes = [
        ("transformers", "TrainingArguments"),
        *(("trl", f"{name}Config") for name in ("SFT", "DPO", "GRPO", "KTO")),
    ]
    for library, cls in [*classes, ("trl", "RewardConfig")]:
        assert fields(library, cls) == frozenset(studied[cls]), cls
        for field, row in studied[cls].items():
            found = default(library, cls, field)
            assert found is not None, field
            if not isinstance(found.value, list | dict) and not found.required:
                assert found.value == row["default"], (cls, field)
