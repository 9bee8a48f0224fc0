"""ESM-2 with the masked-language-model head.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.memory.activations.families import known

SMALL: dict[str, Any] = {
    "model_type": "esm", "vocab_size": 1000, "hidden_size": 512, "num_hidden_layers": 3, "num_attention_heads": 8,
    "intermediate_size": 2048, "max_position_embeddings": 1026, "position_embedding_type": "rotary",
    "token_dropout": True, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip


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
