"""Falcon's three designs, and what attention makes of single heads, masks and fp32 tables, against torch's own count.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD, sequences of 1024 tokens.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import GC
from tests.memory.activations.steps import AMP, BF16, MIB, step

SINGLE: dict[str, Any] = {
    "model_type": "falcon", "hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 16, "vocab_size": 2000,
    "multi_query": True,
}  # fmt: skip
GROUPED = {**SINGLE, "new_decoder_architecture": True, "num_kv_heads": 4}
PLAIN = {"gradient_checkpointing": False}
EAGER = {"attention": "eager"}


def test_no_fused_kernel_takes_a_single_head_for_many() -> None:
    """torch's own choice: the reference path, whose scores are fp32 and of all heads."""
    single, grouped = (step(config, 2, 1024, {**PLAIN, **BF16}).allocated_bytes for config in (SINGLE, GROUPED))
    assert single - grouped > 4 * 2 * 16 * 1024 * 1024 * 4


def test_flash_attention_takes_it() -> None:
    flash = {**PLAIN, **BF16, "attention": "flash_attention_2"}
    single, grouped = (step(config, 2, 1024, flash).allocated_bytes for config in (SINGLE, GROUPED))
    assert single < grouped


def test_a_mask_is_handed_on_since_5_15() -> None:
    before, since = (
        step(GROUPED, 2, 1024, {**PLAIN, **BF16, "versions": {"transformers": version}}).allocated_bytes
        for version in ("5.14.0", "5.15.0")
    )
    assert since - before == pytest.approx(4 * 2 * 1024 * 1024 * 2, rel=0.01)


ALIBI = {**SINGLE, "hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8, "vocab_size": 1000,
         "alibi": True, "multi_query": False, "parallel_attn": False, "bias": True}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "counted", "evaluated"),
    [
        (BF16, 136.66, 133.39),
        ({**BF16, **GC}, 96.4, 133.39),
        (AMP, 288.8, 282.83),
        ({**BF16, **EAGER}, 411.37, 741.39),
        ({**BF16, **EAGER, **GC}, 377.33, 741.39),
        ({**AMP, **EAGER}, 552.16, 906.71),
    ],
)
def test_every_head_has_a_mask_of_its_own_with_biases(more: dict[str, Any], counted: float, evaluated: float) -> None:
    """Falcon RW; autocast makes a copy of it in every layer. Evaluated on batches twice as large."""
    found = step(ALIBI, 2, 1024, {**PLAIN, **more, "evaluation": {"batch_size": 4}})
    assert found.allocated_bytes / MIB == pytest.approx(max(counted, evaluated), rel=2e-3)
    alone = step(ALIBI, 2, 1024, {**PLAIN, **more, "evaluation": {"batch_size": 0}})
    assert alone.allocated_bytes / MIB == pytest.approx(counted, rel=1e-3)
