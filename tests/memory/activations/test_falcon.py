"""Falcon's three designs, and what attention makes of single heads, masks and fp32 tables, against torch's own count.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD, sequences of 1024 tokens.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import GC
from tests.memory.activations.steps import AMP, BF16, FP32, MIB, step

SINGLE: dict[str, Any] = {
    "model_type": "falcon", "hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 16, "vocab_size": 2000,
    "multi_query": True,
}  # fmt: skip
GROUPED = {**SINGLE, "new_decoder_architecture": True, "num_kv_heads": 4}
BIASED = {**SINGLE, "multi_query": False, "bias": True}
GEMMA: dict[str, Any] = {
    "model_type": "gemma", "hidden_size": 1024, "intermediate_size": 2304, "num_hidden_layers": 3,
    "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 128, "vocab_size": 2000,
}  # fmt: skip
SLIDING: dict[str, Any] = {
    "model_type": "gemma3_text", "hidden_size": 1152, "intermediate_size": 2304, "num_hidden_layers": 6,
    "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 2000, "sliding_window": 512,
    "tie_word_embeddings": True,
}  # fmt: skip
LLAMA: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 1024, "intermediate_size": 1024, "num_hidden_layers": 2,
    "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 2000,
}  # fmt: skip
PLAIN = {"gradient_checkpointing": False}
EAGER = {"attention": "eager"}
ADAPTED = {"method": "lora", "lora_rank": 16, "lora_targets": "all-linear", "lora_dropout": 0.0, "lora_dtype": "fp32"}


@pytest.mark.parametrize(
    ("config", "batch", "more", "counted"),
    [
        (SINGLE, 2, BF16, 1111.67),
        (SINGLE, 1, BF16, 583.13),
        (SINGLE, 2, AMP, 1317.76),
        (SINGLE, 2, {**BF16, **EAGER}, 683.42),
        (SINGLE, 2, {**BF16, **GC}, 585.39),
        (GROUPED, 2, BF16, 399.73),
        (GROUPED, 2, AMP, 596.05),
        (GROUPED, 2, {**BF16, **GC}, 248.31),
        (BIASED, 2, AMP, 704.90),
        (BIASED, 2, {**BF16, **GC}, 273.39),
        (GEMMA, 4, {**AMP, **EAGER}, 1509.10),
        (SLIDING, 4, AMP, 2530.52),
        (LLAMA, 4, {**AMP, "padded_batches": True}, 590.88),
    ],
)
def test_torchs_own_count(config: dict[str, Any], batch: int, more: dict[str, Any], counted: float) -> None:
    assert step(config, batch, 1024, {**PLAIN, **more}).allocated_bytes / MIB == pytest.approx(counted, rel=3e-4)


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


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (SINGLE, BF16, 210.861),
        (SINGLE, AMP, 273.951),
        (SINGLE, FP32, 267.451),
        (SINGLE, {**AMP, **EAGER}, 350.451),
        (GROUPED, AMP, 170.467),
        (GROUPED, {**AMP, **EAGER}, 374.217),
        (BIASED, AMP, 196.521),
        (BIASED, {**AMP, **EAGER}, 392.271),
        (BIASED, {**AMP, **ADAPTED}, 215.365),
    ],
)
def test_an_evaluation(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    """By ``bench.fake_evaluation``: autocast keeps no copy of what is multiplied as a view, and SDPA's reference path
    has the mask in its arguments' dtype and, under autocast, their copies."""
    small = {**config, "num_hidden_layers": 2, "vocab_size": 1000}
    found = step(small, 4, 512, {**PLAIN, **more, "evaluation": {"batch_size": 4}})
    evaluated = max(moment.allocated for moment in found.moments if moment.phase == "evaluate")
    assert evaluated / MIB == pytest.approx(counted, rel=1e-4)
