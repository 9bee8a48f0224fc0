"""ModernBERT and its decoder against torch's own count under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23, for the encoder with ``AutoModelForMaskedLM`` in the place
of a causal language model: MiB of a whole step with SGD, 4 x 1024 tokens.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, LORA, REENTRANT
from lintfit.catalog import models
from lintfit.memory.activations.families import known
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "modernbert", "vocab_size": 1000, "hidden_size": 512, "num_hidden_layers": 4,
    "num_attention_heads": 8, "intermediate_size": 1024, "max_position_embeddings": 2048,
}  # fmt: skip
DROPS: dict[str, Any] = {
    **SMALL, "attention_dropout": 0.1, "mlp_dropout": 0.1, "embedding_dropout": 0.1, "attention_bias": True,
    "mlp_bias": True, "norm_bias": True, "layer_types": ["full_attention", "sliding_attention"] * 2,
}  # fmt: skip
DECODER = {**SMALL, "model_type": "modernbert-decoder"}
DECODER_DROPS = {**DROPS, "model_type": "modernbert-decoder"}
FEW = {**LORA, "lora_targets": ["Wqkv"], "lora_dtype": "fp32"}
ALL = {**EVERY, "lora_dtype": "fp32"}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 393.71),
        (SMALL, AMP, 477.37),
        (SMALL, FP32, 739.70),
        (SMALL, {**BF16, "attention": "eager"}, 1203.22),
        (SMALL, {**BF16, **GC}, 143.73),
        (SMALL, {**BF16, **REENTRANT}, 147.73),
        (SMALL, {**AMP, **GC}, 202.20),
        (SMALL, {**AMP, **REENTRANT}, 210.20),
        (SMALL, {**HALF_AMP, **ALL}, 443.23),
        (SMALL, {**AMP, **ALL}, 484.68),
        (SMALL, {**HALF_AMP, **FEW}, 377.64),
        (SMALL, {**AMP, **FEW}, 419.09),
        (SMALL, {**BF16, "padded_batches": True}, 409.71),
        (SMALL, {**HALF_AMP, **ALL, **REENTRANT}, 202.78),
        (SMALL, {**AMP, **ALL, **REENTRANT}, 225.26),
        (DROPS, BF16, 419.76),
        (DROPS, AMP, 503.49),
        (DROPS, FP32, 765.79),
        (DROPS, {**BF16, "attention": "eager"}, 1319.28),
        (DROPS, {**BF16, **GC}, 147.80),
        (DROPS, {**AMP, **GC}, 216.34),
        (DROPS, {**HALF_AMP, **ALL}, 467.29),
        (DROPS, {**AMP, **ALL, **REENTRANT}, 240.91),
        (DECODER, BF16, 363.21),
        (DECODER, AMP, 480.43),
        (DECODER, FP32, 678.70),
        (DECODER, {**BF16, "attention": "eager"}, 1204.72),
        (DECODER, {**BF16, **GC}, 137.23),
        (DECODER, {**BF16, **REENTRANT}, 141.23),
        (DECODER, {**AMP, **GC}, 205.21),
        (DECODER, {**HALF_AMP, **ALL}, 447.67),
        (DECODER, {**AMP, **ALL}, 489.12),
        (DECODER, {**BF16, "padded_batches": True}, 379.21),
        (DECODER, {**AMP, **ALL, **REENTRANT}, 228.86),
        (DECODER_DROPS, BF16, 389.26),
        (DECODER_DROPS, AMP, 506.56),
        (DECODER_DROPS, {**BF16, "attention": "eager"}, 1320.78),
        (DECODER_DROPS, {**BF16, **GC}, 141.30),
        (DECODER_DROPS, {**HALF_AMP, **ALL, **REENTRANT}, 221.93),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(config, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=3e-4)


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 83.03),
        (SMALL, AMP, 133.52),
        (SMALL, {**BF16, "attention": "eager"}, 382.03),
        (SMALL, {**AMP, **ALL}, 135.82),
        (DECODER, BF16, 84.53),
        (DECODER, AMP, 136.52),
        (DECODER, {**BF16, "attention": "eager"}, 383.53),
    ],
)
def test_an_evaluation(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    evaluated = {"evaluation": {"batch_size": 4}, "gpu_memory_gib": 1000, **GC, **more}
    moments = step(config, 1, 1024, evaluated).moments
    largest = max(moment.allocated for moment in moments if moment.phase == "evaluate")
    assert largest / MIB == pytest.approx(counted, rel=5e-4)


def test_a_head_for_masked_words_alone_is_not_counted() -> None:
    assert known(models.from_config(SMALL, "small"))
    assert not known(models.from_config({**SMALL, "sparse_prediction": True}, "small"))


def test_the_published_models() -> None:
    sizes = {"answerdotai/ModernBERT-base": 149e6, "answerdotai/ModernBERT-large": 395e6}
    sizes |= {"jhu-clsp/ettin-decoder-150m": 150e6, "jhu-clsp/ettin-decoder-1b": 1028e6}
    for model, parameters in sizes.items():
        facts = models.lookup(model)
        assert facts is not None and known(facts)
        assert facts.parameters == pytest.approx(parameters, rel=0.01)
