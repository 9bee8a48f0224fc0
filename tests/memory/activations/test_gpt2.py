"""GPT-2's attention with ``reorder_and_upcast_attn``.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

from lintfit.memory.result import Estimate
from tests.memory.activations.steps import BF16, step

SMALL: dict[str, Any] = {
    "model_type": "gpt2",
    "vocab_size": 1000,
    "n_embd": 512,
    "n_layer": 3,
    "n_head": 8,
    "n_positions": 1024,
    "reorder_and_upcast_attn": True,
}


def run(more: dict[str, Any]) -> Estimate:
    given = {"model_config": SMALL, "attention": "eager", "gradient_checkpointing": False, **more}
    return step(given.pop("model_config"), given.pop("micro_batch_size", 4), given.pop("seq_len", 512), given)


def test_sdpa_does_not_ask_for_it() -> None:
    plain = {**SMALL, "reorder_and_upcast_attn": False}
    either = [run({**BF16, "attention": "sdpa", "model_config": config}) for config in (SMALL, plain)]
    assert either[0].allocated_bytes == either[1].allocated_bytes
