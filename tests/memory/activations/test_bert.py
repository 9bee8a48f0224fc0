"""BERT's layers and masked-language-model head against torch's own count under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23, with ``AutoModelForMaskedLM`` in the place of a causal
language model: MiB of a whole step with SGD, 8 x 512 tokens.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC
from lintfit.catalog import models
from lintfit.memory import estimate
from lintfit.memory.activations.families import known
from lintfit.memory.reading.parse import spec_from_mapping
from tests.memory.activations.steps import AMP, BF16, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "bert", "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 4,
    "num_attention_heads": 8, "max_position_embeddings": 1024, "vocab_size": 1000,
}  # fmt: skip
WORDS = {**SMALL, "vocab_size": 30522}
ROBERTA = {**WORDS, "model_type": "roberta", "max_position_embeddings": 1026}
EAGER, PADDED = {"attention": "eager"}, {"padded_batches": True}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SMALL, BF16, 344.84),
        (SMALL, AMP, 492.52),
        (SMALL, {**BF16, **EAGER}, 664.34),
        (SMALL, {**BF16, **GC}, 140.30),
        (SMALL, {**AMP, **GC}, 228.39),
        (SMALL, {**BF16, **PADDED}, 360.84),
        (SMALL, {**BF16, **GC, **EAGER}, 220.17),
        (WORDS, BF16, 1065.65),
        (WORDS, AMP, 1962.74),
        (WORDS, {**BF16, **EAGER}, 1385.15),
        (WORDS, {**BF16, **GC}, 808.90),
        (WORDS, {**BF16, **PADDED}, 1081.65),
        (ROBERTA, BF16, 1065.71),
        (ROBERTA, AMP, 1962.80),
        (ROBERTA, {**BF16, **GC}, 808.96),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(config, 8, 512, more).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)


def test_adapters() -> None:
    """The first norm's result is fp32 under autocast, and with checkpointing its input is a sum beside the leaf."""
    adapted = {**EVERY, "lora_dtype": "fp32", "gradient_checkpointing": False}
    assert step(SMALL, 8, 512, {**HALF_AMP, **adapted}).allocated_bytes / MIB == pytest.approx(459.77, rel=2e-4)
    assert step(SMALL, 3, 499, {**AMP, **adapted, **GC}).allocated_bytes / MIB == pytest.approx(136.66, rel=2e-4)


@pytest.mark.parametrize("model", ["google-bert/bert-base-uncased", "FacebookAI/xlm-roberta-base", "camembert-base"])
def test_published_models_are_counted(model: str) -> None:
    facts = models.lookup(model)
    assert facts is not None and known(facts)
    base = {"model": model, "micro_batch_size": 16, "seq_len": 256, "weights_dtype": "fp32", "gpu": "T4"}
    found = estimate(spec_from_mapping(base))
    assert not any("nearest" in line for line in found.assumptions)


@pytest.mark.parametrize(("attention", "counted"), [("sdpa", 55.075), ("eager", 120.556)])
def test_an_evaluation_under_autocast(attention: str, counted: float) -> None:
    """By ``bench.fake_evaluation``, 4 x 512 tokens: scores stay in half precision, as no mask in fp32 is added to them;
    a transformers before 5 adds one of zeros."""
    small = {**SMALL, "intermediate_size": 1024, "num_hidden_layers": 2}
    more = {**AMP, "attention": attention, "gradient_checkpointing": False, "evaluation": {"batch_size": 4}}
    now, before = (
        max(moment.allocated for moment in step(small, 4, 512, how).moments if moment.phase == "evaluate")
        for how in (more, {**more, "versions": {"transformers": "4.57.3"}})
    )
    assert now / MIB == pytest.approx(counted, rel=1e-3)
    assert (before != now) is (attention == "eager")
