"""BERT's layers and masked-language-model head.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.memory import estimate
from lintfit.memory.activations.families import known
from lintfit.memory.reading.parse import spec_from_mapping
from tests.memory.activations.steps import AMP, step

SMALL: dict[str, Any] = {
    "model_type": "bert", "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 4,
    "num_attention_heads": 8, "max_position_embeddings": 1024, "vocab_size": 1000,
}  # fmt: skip


@pytest.mark.parametrize("model", ["google-bert/bert-base-uncased", "FacebookAI/xlm-roberta-base", "camembert-base"])
def test_published_models_are_counted(model: str) -> None:
    facts = models.lookup(model)
    assert facts is not None and known(facts)
    base = {"model": model, "micro_batch_size": 16, "seq_len": 256, "weights_dtype": "fp32", "gpu": "T4"}
    found = estimate(spec_from_mapping(base))
    assert not any("nearest" in line for line in found.assumptions)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_an_evaluation_under_autocast(attention: str) -> None:
    """Eager scores stay in half precision; a transformers before 5 adds a mask of zeros in fp32 to them."""
    small = {**SMALL, "intermediate_size": 1024, "num_hidden_layers": 2}
    more = {**AMP, "attention": attention, "gradient_checkpointing": False, "evaluation": {"batch_size": 4}}
    now, before = (
        max(moment.allocated for moment in step(small, 4, 512, how).moments if moment.phase == "evaluate")
        for how in (more, {**more, "versions": {"transformers": "4.57.3"}})
    )
    assert (before != now) is (attention == "eager")
