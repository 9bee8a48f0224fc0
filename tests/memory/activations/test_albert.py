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


def test_the_published_models() -> None:
    """Published counts have a pooler, which masked words do without, and no head (keras-hub ``albert_presets.py``)."""
    sizes = {"base-v2": 11_683_584, "large-v2": 17_683_968, "xlarge-v2": 58_724_864, "xxlarge-v2": 222_595_584}
    for size, parameters in sizes.items():
        facts = models.lookup(f"albert/albert-{size}")
        assert facts is not None and known(facts)
        pooler = facts.hidden * (facts.hidden + 1)
        assert sum(tensor.total for tensor in facts.tensors if tensor.where != "head") + pooler == parameters
    assert not known(models.from_config({**SMALL, "inner_group_num": 2}, "small"))
