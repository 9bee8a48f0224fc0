"""What libraries fill in for fields that nobody states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from lintfit.sources.training_defaults import default_of, fields_of


@pytest.mark.parametrize(
    ("cls", "field", "versions", "expected"),
    [
        ("trl.SFTConfig", "max_length", {"trl": "1.16.0"}, (1024, "trl 1.16.0 default")),
        ("trl.SFTConfig", "bf16", {"trl": "0.12.0", "transformers": "4.46.0"}, (False, "transformers 4.46.0 default")),
        ("trl.BCOConfig", "gradient_checkpointing", {"trl": "1.9.0"}, (True, "trl 1.9.0 default")),
        ("trl.ModelConfig", "lora_r", {"trl": "1.0.0"}, (16, "trl 1.0.0 default")),
        ("trl.SFTConfig", "max_seq_length", {}, (None, "trl 0.19.1 default")),
        ("trl.ScriptArguments", "dataset_name", {}, None),
        ("trl.ModelConfig", "per_device_train_batch_size", {}, None),
    ],
)
def test_default(cls: str, field: str, versions: Mapping[str, str], expected: Any) -> None:
    assert default_of(cls, field, versions) == expected


def test_a_config_accepts_what_it_inherits() -> None:
    assert {"packing", "per_device_train_batch_size"} <= fields_of("trl.SFTConfig")
    assert "vllm_device" in fields_of("trl.GRPOConfig") & fields_of("open_r1.configs.GRPOConfig")
    assert "per_device_train_batch_size" not in fields_of("trl.ModelConfig")
    assert fields_of("trl.ScriptArguments") == frozenset()
