"""Rotary tables of all positions in every layer, as some classes had them in transformers 4."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping

SPEC: dict[str, Any] = {
    "method": "full",
    "engine": "single",
    "gpus": 1,
    "weights_dtype": "bf16",
    "mixed_precision": "no",
    "optimizer": "sgd",
    "attention": "flash_attention_2",
    "gradient_checkpointing": False,
    "micro_batch_size": 1,
    "seq_len": 128,
}


def held(model: str, transformers: str, phase: str = "forward") -> int:
    """Bytes of the weights and buffers."""
    spec = SPEC | {"model": model, "versions": {"transformers": transformers}}
    found: int = estimate(spec_from_mapping(spec)).to_json()["phases"][phase]["parameters"]
    return found


@pytest.mark.parametrize(
    ("model", "with_them", "without", "tables"),
    [
        ("mistralai/Mistral-7B-v0.1", "4.41.2", "4.42.4", 32 * 2 * 32768 * 128 * 2),
        ("Qwen/Qwen2-7B", "4.44.2", "4.45.2", 28 * 2 * 131072 * 128 * 2),
    ],
)
def test_each_layer_has_cosines_and_sines_of_all_positions(
    model: str, with_them: str, without: str, tables: int
) -> None:
    for phase in ("load", "forward", "backward", "step", "evaluate", "save"):
        assert held(model, with_them, phase) - held(model, without, phase) == tables, phase


def test_llama_has_none() -> None:
    assert held("huggyllama/llama-7b", "4.41.2") == held("huggyllama/llama-7b", "4.42.4")
