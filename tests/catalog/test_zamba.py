"""Zamba: its published size, its kinds of layers, and what transformers does not run."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.catalog.architectures import zamba2
from lintfit.catalog.config import CatalogError, Config

SMALL: dict[str, Any] = {
    "model_type": "zamba", "hidden_size": 64, "intermediate_size": 100, "num_hidden_layers": 9,
    "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 1000,
}  # fmt: skip


def test_the_published_model() -> None:
    facts = models.lookup("Zyphra/Zamba-7B-v1")
    assert facts is not None
    assert zamba2.hybrids(Config(facts.config, {}, facts.name)) == (2, *range(7, 74, 6))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"tie_word_embeddings": False}, "shares no block"),
        ({"n_mamba_heads": 3}, "must divide"),
        ({"attention_hidden_size": 64}, "twice the hidden size"),
        ({"attn_layer_period": "six"}, "attn_layer_period"),
    ],
)
def test_what_transformers_does_not_run(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(CatalogError, match=words):
        models.from_config({**SMALL, **wrong}, "small")
