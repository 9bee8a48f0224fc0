"""ESM-2 with the masked-language-model head against torch's own count under fake tensors.

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
    "model_type": "esm", "vocab_size": 1000, "hidden_size": 512, "num_hidden_layers": 3, "num_attention_heads": 8,
    "intermediate_size": 2048, "max_position_embeddings": 1026, "position_embedding_type": "rotary",
    "token_dropout": True, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
DROPS = {**SMALL, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "token_dropout": False}
FEW = {**LORA, "lora_targets": ["query", "value"], "lora_dtype": "fp32"}
ALL = {**EVERY, "lora_dtype": "fp32"}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 379.87),
        (SMALL, AMP, 478.57),
        (SMALL, FP32, 759.12),
        (SMALL, {**BF16, "attention": "eager"}, 571.49),
        (SMALL, {**BF16, **GC}, 199.52),
        (SMALL, {**BF16, **REENTRANT}, 203.52),
        (SMALL, {**AMP, **GC}, 258.80),
        (SMALL, {**AMP, **REENTRANT}, 266.80),
        (SMALL, {**HALF_AMP, **ALL}, 445.22),
        (SMALL, {**AMP, **ALL}, 481.99),
        (SMALL, {**HALF_AMP, **FEW}, 369.65),
        (SMALL, {**AMP, **FEW}, 407.90),
        (SMALL, {**BF16, "padded_batches": True}, 403.90),
        (SMALL, {**HALF_AMP, **ALL, **REENTRANT}, 230.86),
        (SMALL, {**AMP, **ALL, **REENTRANT}, 266.58),
        (DROPS, BF16, 389.86),
        (DROPS, AMP, 490.56),
        (DROPS, {**BF16, "attention": "eager"}, 869.49),
        (DROPS, {**AMP, "attention": "eager"}, 1201.22),
        (DROPS, {**AMP, "attention": "eager", **GC}, 533.15),
        (DROPS, {**AMP, "attention": "eager", **REENTRANT}, 549.15),
        (DROPS, {**BF16, **GC}, 201.51),
        (DROPS, {**AMP, **ALL}, 493.99),
        (DROPS, {**AMP, **ALL, **REENTRANT}, 260.57),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(config, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 99.82),
        (SMALL, AMP, 151.62),
        (SMALL, {**BF16, "attention": "eager"}, 171.82),
        (SMALL, {**AMP, **ALL}, 142.30),
    ],
)
def test_an_evaluation(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    evaluated = {"evaluation": {"batch_size": 4}, "gpu_memory_gib": 1000, **GC, **more}
    moments = step(config, 1, 1024, evaluated).moments
    largest = max(moment.allocated for moment in moments if moment.phase == "evaluate")
    assert largest / MIB == pytest.approx(counted, rel=5e-4)


def test_the_published_models() -> None:
    for size, parameters in {"t12_35M": 35e6, "t30_150M": 150e6, "t33_650M": 650e6, "t36_3B": 2.8e9}.items():
        facts = models.lookup(f"facebook/esm2_{size}_UR50D")
        assert facts is not None and known(facts)
        assert facts.parameters == pytest.approx(parameters, rel=0.06)


@pytest.mark.parametrize(
    "odd", [{"position_embedding_type": "absolute"}, {"emb_layer_norm_before": True}, {"is_folding_model": True}]
)
def test_what_nobody_has_counted(odd: dict[str, Any]) -> None:
    assert known(models.from_config(SMALL, "small"))
    assert not known(models.from_config({**SMALL, **odd}, "small"))
