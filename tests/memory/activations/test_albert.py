"""ALBERT with the masked-language-model head against torch's own count under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23, with ``AutoModelForMaskedLM`` in the place of a causal
language model: MiB of a whole step with SGD, 4 x 1024 tokens.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, LORA
from lintfit.catalog import models
from lintfit.memory.activations.families import known
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "albert", "vocab_size": 1000, "embedding_size": 128, "hidden_size": 512, "num_hidden_layers": 4,
    "num_attention_heads": 8, "intermediate_size": 2048, "max_position_embeddings": 1024,
}  # fmt: skip
WORDS = {**SMALL, "vocab_size": 8192}
GROUPS: dict[str, Any] = {
    **SMALL, "hidden_act": "gelu", "num_hidden_groups": 2, "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}  # fmt: skip
FEW = {**LORA, "lora_targets": ["query", "value"], "lora_dtype": "fp32"}
ALL = {**EVERY, "lora_dtype": "fp32"}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 491.95),
        (SMALL, AMP, 818.21),
        (SMALL, FP32, 983.08),
        (SMALL, {**BF16, "attention": "eager"}, 753.92),
        (SMALL, {**HALF_AMP, **ALL}, 828.62),
        (SMALL, {**AMP, **ALL}, 857.35),
        (SMALL, {**HALF_AMP, **FEW}, 740.75),
        (SMALL, {**AMP, **FEW}, 767.98),
        (SMALL, {**BF16, "padded_batches": True}, 523.95),
        (SMALL, {**AMP, "padded_batches": True}, 850.21),
        (GROUPS, BF16, 310.58),
        (GROUPS, AMP, 417.50),
        (GROUPS, {**BF16, "attention": "eager"}, 950.43),
        (GROUPS, {**HALF_AMP, **ALL}, 433.48),
        (GROUPS, {**AMP, **ALL}, 470.23),
        (GROUPS, {**AMP, **FEW}, 344.69),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(config, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 79.81),
        (SMALL, AMP, 133.71),
        (SMALL, {**AMP, **ALL}, 128.51),
        (WORDS, BF16, 140.58),
        (WORDS, AMP, 353.39),
        (WORDS, FP32, 281.11),
        (GROUPS, BF16, 53.82),
        (GROUPS, AMP, 87.74),
    ],
)
def test_an_evaluation(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    evaluated = {"evaluation": {"batch_size": 4}, "gpu_memory_gib": 1000, "gradient_checkpointing": False, **more}
    moments = step(config, 1, 1024, evaluated).moments
    largest = max(moment.allocated for moment in moments if moment.phase == "evaluate")
    assert largest / MIB == pytest.approx(counted, rel=5e-4)


def test_the_published_models() -> None:
    """Published counts have a pooler, which masked words do without, and no head (keras-hub ``albert_presets.py``)."""
    sizes = {"base-v2": 11_683_584, "large-v2": 17_683_968, "xlarge-v2": 58_724_864, "xxlarge-v2": 222_595_584}
    for size, parameters in sizes.items():
        facts = models.lookup(f"albert/albert-{size}")
        assert facts is not None and known(facts)
        pooler = facts.hidden * (facts.hidden + 1)
        assert sum(tensor.total for tensor in facts.tensors if tensor.where != "head") + pooler == parameters
    assert not known(models.from_config({**SMALL, "inner_group_num": 2}, "small"))
