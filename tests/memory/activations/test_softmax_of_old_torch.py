"""torch up to 1.10 hands a softmax's input to its backward, which asks it for its dtype alone."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping

SPEC: dict[str, Any] = {
    "model": "FacebookAI/xlm-roberta-base",
    "method": "full",
    "engine": "single",
    "gpus": 1,
    "weights_dtype": "fp32",
    "mixed_precision": "no",
    "trainer": "classification",
    "attention": "eager",
    "optimizer": "adamw_torch",
    "gradient_checkpointing": False,
    "micro_batch_size": 16,
    "seq_len": 384,
}


def allocated(**changes: Any) -> int:
    return estimate(spec_from_mapping(SPEC | changes)).allocated_bytes


@pytest.mark.parametrize(("torch", "kept"), [("1.8.1", True), ("1.10.2", True), ("1.12.1", False)])
def test_every_layer_keeps_its_scores(torch: str, kept: bool) -> None:
    now = allocated(versions={"transformers": "4.6.0", "torch": "1.11.0"})
    then = allocated(versions={"transformers": "4.6.0", "torch": torch})
    assert then - now == kept * 12 * 16 * 12 * 384 * 384 * 4


def test_the_logits_stay_as_well() -> None:
    spec = {"model": "openai-community/gpt2", "trainer": "causal-lm", "micro_batch_size": 8, "seq_len": 64}
    now = allocated(**spec, versions={"transformers": "4.6.0", "torch": "1.11.0"})
    then = allocated(**spec, versions={"transformers": "4.6.0", "torch": "1.10.0"})
    assert then - now >= 8 * 63 * 50257 * 4
