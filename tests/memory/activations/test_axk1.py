"""A.X K1's layers, one dense and one of experts, against torch's own count under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, REENTRANT
from lintfit.catalog import models
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "axk1", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 2,
    "num_attention_heads": 16, "vocab_size": 1000, "q_lora_rank": 256, "kv_lora_rank": 128, "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128, "v_head_dim": 128, "n_routed_experts": 16, "num_experts_per_tok": 4,
    "moe_intermediate_size": 256, "n_group": 1, "topk_group": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 813.40),
        (AMP, 1027.96),
        (FP32, 1279.37),
        ({**BF16, "attention": "eager"}, 1576.08),
        ({**BF16, **GC}, 561.22),
        ({**BF16, **REENTRANT}, 601.09),
        ({**HALF_AMP, **EVERY, "lora_dtype": "fp32"}, 697.29),
        ({**BF16, "padded_batches": True}, 829.40),
    ],
)
def test_torchs_own_count(more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(SMALL, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)


def test_the_published_model_has_as_many_parameters_as_its_card_says() -> None:
    facts = models.lookup("skt/A.X-K1")
    assert facts is not None
    assert facts.parameters == pytest.approx(519e9, rel=2e-3)
