"""ALBERT with the masked-language-model head.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

from lintfit.catalog import models
from lintfit.memory.activations.families import known

SMALL: dict[str, Any] = {
    "model_type": "albert", "vocab_size": 1000, "embedding_size": 128, "hidden_size": 512, "num_hidden_layers": 4,
    "num_attention_heads": 8, "intermediate_size": 2048, "max_position_embeddings": 1024,
}  # fmt: skip


def test_layers_of_several_in_a_group_are_not_known() -> None:
    assert known(models.from_config(SMALL, "small"))
    assert not known(models.from_config({**SMALL, "inner_group_num": 2}, "small"))
