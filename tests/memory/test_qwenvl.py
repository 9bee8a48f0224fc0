"""Qwen-VL, whose config says ``qwen`` and has a ``visual`` beside: its code is read, but not measured."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping

MODEL = "Qwen/Qwen-VL-Chat"


def _allocated(**more: Any) -> int:
    spec = {"model": MODEL, "micro_batch_size": 1, "seq_len": 2048, "images": 1, **more}
    return estimate(spec_from_mapping(spec)).allocated_bytes


def test_a_qwen_with_a_visual_part_is_qwen_vl() -> None:
    """1.9 billion in the encoder, 0.08 in the adapter, 7.7 in the language model (arXiv:2308.12966, table 1)."""
    facts, text = models.lookup(MODEL), models.lookup("Qwen/Qwen-7B")
    assert facts is not None and text is not None
    again = models.from_config({**facts.config, "model_type": "qwen"})
    assert again.model_type == "qwenvl" and again.parameters == facts.parameters
    adapter = sum(each.total for each in facts.tensors if "attn_pool" in each.name)
    visual = sum(each.total for each in facts.tensors if "visual" in each.name)
    assert adapter == pytest.approx(0.08e9, rel=0.06)
    assert visual == pytest.approx(1.94e9, rel=0.01)
    assert facts.parameters - visual == text.parameters
    assert "visual" not in models.from_config({**text.config}).config


def test_256_tokens_of_an_image() -> None:
    facts = models.lookup(MODEL)
    assert facts is not None and facts.vision is not None
    assert (facts.vision.tokens, facts.vision.intermediate) == (256, 8192)


def test_the_encoder_computes_its_own_scores() -> None:
    """``bmm``, softmax and ``bmm`` whatever kernel is asked for: 48 layers of 16 heads keep them."""
    kept = 48 * 16 * 1024**2 * 2
    for attention in ("sdpa", "flash_attention_2"):
        how = {"gradient_checkpointing": False, "attention": attention}
        assert _allocated(images=1, **how) - _allocated(images=0, **how) > kept
