"""DBRX's layers against torch's own count of small models under fake tensors, tokens spread evenly over the experts.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, REENTRANT
from lintfit.catalog import models
from tests.memory.activations.steps import AMP, BF16, FP32, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "dbrx",
    "d_model": 1024,
    "n_heads": 16,
    "n_layers": 2,
    "vocab_size": 1000,
    "max_seq_len": 2048,
    "attn_config": {"kv_n_heads": 4, "clip_qkv": 8, "rope_theta": 10000.0},
    "ffn_config": {"ffn_hidden_size": 512, "moe_num_experts": 8, "moe_top_k": 2, "moe_jitter_eps": 0},
}


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 450.34),
        (AMP, 711.69),
        (FP32, 1652.86),
        ({**BF16, "attention": "eager"}, 1466.59),
        ({**BF16, **GC}, 296.81),
        ({**BF16, **REENTRANT}, 304.81),
        ({**AMP, **EVERY, "lora_dtype": "fp32"}, 611.64),
        ({**AMP, **EVERY, **REENTRANT, "lora_dtype": "fp32"}, 417.35),
        ({**BF16, "padded_batches": True}, 470.34),
    ],
)
def test_torchs_own_count(more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(SMALL, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)


def test_the_published_model() -> None:
    facts = models.lookup("databricks/dbrx-base")
    assert facts is not None and facts.parameters == pytest.approx(131.6e9, rel=0.001)
