"""GPT-2's attention with ``reorder_and_upcast_attn`` against torch's own count of a small model under fake tensors.

``bench.fake_tensors`` and ``bench.fake_evaluation`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import GC, LORA, REENTRANT
from lintfit.memory.result import Estimate
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "gpt2",
    "vocab_size": 1000,
    "n_embd": 512,
    "n_layer": 3,
    "n_head": 8,
    "n_positions": 1024,
    "reorder_and_upcast_attn": True,
}
FEW = {**LORA, "lora_targets": ["c_attn"], "lora_dtype": "fp32"}


def run(more: dict[str, Any]) -> Estimate:
    given = {"model_config": SMALL, "attention": "eager", "gradient_checkpointing": False, **more}
    return step(given.pop("model_config"), given.pop("micro_batch_size", 4), given.pop("seq_len", 512), given)


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 402.58),
        (FP32, 640.11),
        (AMP, 552.11),
        ({**HALF_AMP, **FEW}, 477.87),
        ({**BF16, **GC}, 173.07),
        ({**BF16, **REENTRANT}, 175.07),
        ({**AMP, **GC}, 268.09),
        ({**HALF_AMP, **FEW, **GC}, 215.58),
        ({**BF16, "micro_batch_size": 1}, 119.03),
        ({**BF16, "micro_batch_size": 3, "seq_len": 333}, 177.98),
        ({**BF16, "model_config": {**SMALL, "attn_pdrop": 0.0}}, 378.58),
    ],
)
def test_torchs_own_count(more: dict[str, Any], counted: float) -> None:
    assert run(more).allocated_bytes / MIB == pytest.approx(counted, rel=3e-4)


@pytest.mark.parametrize(
    ("more", "counted"), [(BF16, 110.54), (FP32, 161.05), (AMP, 152.57), ({**HALF_AMP, **FEW}, 113.10)]
)
def test_evaluation(more: dict[str, Any], counted: float) -> None:
    found = run({**more, "evaluation": {"batch_size": 4}})
    worst = max(moment.allocated for moment in found.moments if moment.phase == "evaluate")
    assert worst / MIB == pytest.approx(counted, rel=3e-4)


def test_sdpa_does_not_ask_for_it() -> None:
    plain = {**SMALL, "reorder_and_upcast_attn": False}
    either = [run({**BF16, "attention": "sdpa", "model_config": config}) for config in (SMALL, plain)]
    assert either[0].allocated_bytes == either[1].allocated_bytes
