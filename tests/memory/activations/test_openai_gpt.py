"""OpenAI's first GPT against torch's own count under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, LORA
from lintfit.catalog import models
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "openai-gpt", "vocab_size": 1000, "n_embd": 512, "n_layer": 3, "n_head": 8, "n_positions": 1024,
}  # fmt: skip
STILL = {**SMALL, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "afn": "relu"}
FEW = {**LORA, "lora_targets": ["c_attn"], "lora_dtype": "fp32"}
ALL = {**EVERY, "lora_dtype": "fp32"}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 907.12),
        (SMALL, AMP, 1358.18),
        (SMALL, FP32, 1670.18),
        (SMALL, {**HALF_AMP, **ALL}, 1311.92),
        (SMALL, {**AMP, **ALL}, 1352.41),
        (SMALL, {**HALF_AMP, **FEW}, 1257.15),
        (SMALL, {**AMP, **FEW}, 1297.65),
        (SMALL, {**BF16, "padded_batches": True}, 907.12),
        (SMALL, {**AMP, "padded_batches": True}, 1358.18),
        (STILL, BF16, 473.18),
        (STILL, AMP, 980.67),
        (STILL, {**HALF_AMP, **ALL}, 965.74),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, "attention": "eager", **more}
    assert step(config, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=1e-4)


@pytest.mark.parametrize(("more", "counted"), [(BF16, 106.53), (AMP, 192.52)])
def test_one_sequence_is_not_copied_for_its_products(more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, "attention": "eager", **more}
    assert step(SMALL, 1, 512, more).allocated_bytes / MIB == pytest.approx(counted, rel=3e-4)


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 241.05),
        (AMP, 419.59),
        ({**AMP, **ALL}, 408.13),
    ],
)
def test_an_evaluation(more: dict[str, Any], counted: float) -> None:
    evaluated = {"evaluation": {"batch_size": 4}, "gpu_memory_gib": 1000, "gradient_checkpointing": False, **more}
    moments = step(SMALL, 1, 1024, {"attention": "eager", **evaluated}).moments
    largest = max(moment.allocated for moment in moments if moment.phase == "evaluate")
    assert largest / MIB == pytest.approx(counted, rel=2e-4)


def test_the_published_model() -> None:
    facts = models.lookup("openai-community/openai-gpt")
    assert facts is not None
    assert facts.parameters == 116_534_784
