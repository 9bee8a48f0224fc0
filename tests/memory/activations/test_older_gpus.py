"""SDPA on GPUs before Ampere, with the kernels that ``sdp_utils.cpp`` leaves to compute capability 7.5.

What torch counts of small models is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory.result import Verdict
from tests.memory.activations.steps import MIB, step

GROUPED: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 3,
    "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 2000,
}  # fmt: skip
T4 = {"gpu": "T4", "gradient_checkpointing": False, "padded_batches": False}
HALF = {"weights_dtype": "fp16"}


def test_older_transformers_repeat_the_groups() -> None:
    older = step(GROUPED, 2, 1024, {**T4, **HALF, "versions": {"transformers": "4.53.0"}})
    masked = step(GROUPED, 2, 1024, {**T4, **HALF, "padded_batches": True})
    assert older.allocated_bytes == pytest.approx(masked.allocated_bytes, rel=0.05)


def test_a_mask_that_nobody_rules_out_bounds_the_low_end() -> None:
    config = {**GROUPED, "num_hidden_layers": 24}
    run = {**T4, **HALF, "versions": {}}
    stated = step(config, 4, 2048, run)
    unsaid = step(config, 4, 2048, {key: value for key, value in run.items() if key != "padded_batches"})
    assert stated.peak.likely == unsaid.peak.likely
    assert unsaid.peak.low < stated.peak.low / 2
    assert any("SDPA's reference path" in line for line in unsaid.assumptions)
    assert not any("SDPA's reference path" in line for line in stated.assumptions)
    assert stated.verdict is Verdict.DOES_NOT_FIT
    assert unsaid.verdict is not Verdict.DOES_NOT_FIT


def test_a_window_that_bites_is_a_mask() -> None:
    sliding = {**GROUPED, "model_type": "mistral", "sliding_window": 512}
    unsaid = {key: value for key, value in T4.items() if key != "padded_batches"}
    assert not any("reference path" in line for line in step(sliding, 2, 1024, {**unsaid, **HALF}).assumptions)
    assert any("reference path" in line for line in step(sliding, 2, 256, {**unsaid, **HALF}).assumptions)


@pytest.mark.parametrize("gpu", ["A100-80GB", "RTX 3090"])
def test_flash_attention_takes_groups(gpu: str) -> None:
    assert step(GROUPED, 2, 1024, {**T4, **HALF, "gpu": gpu}).allocated_bytes / MIB < 400
