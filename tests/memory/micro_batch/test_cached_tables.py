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


def activations(model: str, transformers: str) -> int:
    spec = SPEC | {"model": model, "versions": {"transformers": transformers}}
    found: int = estimate(spec_from_mapping(spec)).to_json()["phases"]["forward"]["activations"]
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
    assert activations(model, with_them) - activations(model, without) == pytest.approx(tables, rel=0.02)


def test_llama_has_none() -> None:
    assert activations("huggyllama/llama-7b", "4.41.2") == activations("huggyllama/llama-7b", "4.42.4")
