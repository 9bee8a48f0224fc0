"""ModernBERT and its decoder.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.memory.activations.families import known

SMALL: dict[str, Any] = {
    "model_type": "modernbert", "vocab_size": 1000, "hidden_size": 512, "num_hidden_layers": 4,
    "num_attention_heads": 8, "intermediate_size": 1024, "max_position_embeddings": 2048,
}  # fmt: skip


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
