"""EuroBERT with its head for masked words against torch's own count under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23, with ``AutoModelForMaskedLM`` in the place of a causal
language model: MiB of a whole step with SGD, 4 x 1024 tokens.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, LORA, REENTRANT
from lintfit.catalog import models
from lintfit.memory.activations.families import known
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "eurobert", "vocab_size": 1000, "hidden_size": 512, "num_hidden_layers": 3,
    "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 2048, "max_position_embeddings": 2048,
}  # fmt: skip
GROUPS = {**SMALL, "num_key_value_heads": 2, "mlp_bias": True, "attention_bias": True, "tie_word_embeddings": True}
FEW = {**LORA, "lora_targets": ["q_proj", "v_proj"], "lora_dtype": "fp32"}
ALL = {**EVERY, "lora_dtype": "fp32"}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 425.61),
        (SMALL, AMP, 540.98),
        (SMALL, FP32, 754.88),
        (SMALL, {**BF16, "attention": "eager"}, 1057.80),
        (SMALL, {**BF16, **GC}, 197.39),
        (SMALL, {**BF16, **REENTRANT}, 201.39),
        (SMALL, {**AMP, **GC}, 268.58),
        (SMALL, {**AMP, **REENTRANT}, 276.58),
        (SMALL, {**HALF_AMP, **ALL}, 460.57),
        (SMALL, {**AMP, **ALL}, 509.28),
        (SMALL, {**HALF_AMP, **FEW}, 346.87),
        (SMALL, {**AMP, **FEW}, 396.78),
        (SMALL, {**BF16, "padded_batches": True}, 449.61),
        (SMALL, {**HALF_AMP, **ALL, **REENTRANT}, 233.80),
        (SMALL, {**AMP, **ALL, **REENTRANT}, 276.01),
        (GROUPS, BF16, 404.42),
        (GROUPS, AMP, 514.39),
        (GROUPS, FP32, 1173.13),
        (GROUPS, {**BF16, "attention": "eager"}, 1054.62),
        (GROUPS, {**BF16, **GC}, 186.73),
        (GROUPS, {**AMP, **ALL}, 483.18),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(config, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=3e-4)


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 90.25),
        (SMALL, AMP, 154.46),
        (SMALL, {**AMP, **ALL}, 155.80),
        (GROUPS, BF16, 87.06),
        (GROUPS, AMP, 145.86),
        (GROUPS, FP32, 362.08),
        (GROUPS, {**BF16, "attention": "eager"}, 369.06),
    ],
)
def test_an_evaluation(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    evaluated = {"evaluation": {"batch_size": 4}, "gpu_memory_gib": 1000, **GC, **more}
    moments = step(config, 1, 1024, evaluated).moments
    largest = max(moment.allocated for moment in moments if moment.phase == "evaluate")
    assert largest / MIB == pytest.approx(counted, rel=5e-4)


def test_the_published_models() -> None:
    """Their names leave the head out, which is as large as the embedding and not tied to it."""
    for size, parameters in {"210m": 210e6, "610m": 610e6, "2.1B": 2.1e9}.items():
        facts = models.lookup(f"EuroBERT/EuroBERT-{size}")
        assert facts is not None and known(facts)
        assert facts.parameters - facts.vocab * facts.hidden == pytest.approx(parameters, rel=0.03)
