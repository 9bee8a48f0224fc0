"""A model with a few scores in the place of the output layer.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

from tests.memory.activations.steps import AMP, step

WIDE: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4,
    "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 64000,
}  # fmt: skip


def test_no_logits_over_the_vocabulary() -> None:
    shape = {**AMP, "gradient_checkpointing": True, "evaluation": {"batch_size": 8, "predictions": "kept"}}
    small, large = (
        step({**WIDE, "vocab_size": words}, 2, 1024, {**shape, "trainer": "classification"}) for words in (1000, 64000)
    )
    logits = [max(moment.components.get("logits", 0) for moment in guess.moments) for guess in (small, large)]
    assert logits[0] == logits[1] < 2**20
