"""A model with a few scores in the place of the output layer, against torch's own count of small models.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23, four layers, 2 x 1024 tokens: MiB of two steps with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import LORA
from tests.memory.activations.steps import AMP, BF16, FP32, MIB, step

WIDE: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4,
    "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 64000,
}  # fmt: skip
TIED = {**WIDE, "tie_word_embeddings": True}
LEARNED = {"model_type": "gpt2", "n_embd": 1024, "n_layer": 4, "n_head": 16, "vocab_size": 8000}
EVERY = {**LORA, "lora_rank": 8, "lora_targets": "all-linear", "lora_dropout": 0.0}
HELD = {"loop_outputs": "held", "use_cache": True, "gradient_checkpointing": False}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (WIDE, BF16, 603.86),
        (WIDE, AMP, 981.13),
        (WIDE, {**AMP, "gradient_checkpointing": True}, 852.10),
        (WIDE, {**BF16, **EVERY}, 771.82),
        (WIDE, {**AMP, **HELD}, 997.13),
        (TIED, FP32, 1787.62),
        (LEARNED, AMP, 1124.13),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    found = step(config, 2, 1024, {**more, "trainer": "classification"})
    assert found.allocated_bytes / MIB == pytest.approx(counted, rel=1e-4)


def test_no_logits_over_the_vocabulary() -> None:
    shape = {**AMP, "gradient_checkpointing": True, "evaluation": {"batch_size": 8, "predictions": "kept"}}
    small, large = (
        step({**WIDE, "vocab_size": words}, 2, 1024, {**shape, "trainer": "classification"}) for words in (1000, 64000)
    )
    logits = [max(moment.components.get("logits", 0) for moment in guess.moments) for guess in (small, large)]
    assert logits[0] == logits[1] < 2**20
