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
from tests.memory.activations.steps import AMP, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "bert", "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 4,
    "num_attention_heads": 8, "max_position_embeddings": 1024, "vocab_size": 1000,
}  # fmt: skip
EAGER, PADDED = {"attention": "eager"}, {"padded_batches": True}


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
