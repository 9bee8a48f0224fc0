"""K-EXAONE: windows, norms on the heads, and experts, against torch's own count under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23, three layers with a window and one without, the first dense:
MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, LORA, REENTRANT
from lintfit.catalog import models
from lintfit.memory.activations.kinds import kinds
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "exaone_moe", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 4,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 1000, "num_experts": 16,
    "num_experts_per_tok": 4, "moe_intermediate_size": 256, "sliding_window": 128, "pad_token_id": 0,
}  # fmt: skip
ALL = {**EVERY, "lora_dtype": "fp32"}
QUERIES = {**LORA, "lora_targets": ["q_proj", "v_proj"], "lora_dtype": "fp32"}


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 1285.38),
        (AMP, 1836.07),
        (FP32, 2400.44),
        ({**BF16, "attention": "eager"}, 2841.56),
        ({**BF16, **GC}, 641.89),
        ({**BF16, **REENTRANT}, 681.76),
        ({**HALF_AMP, **ALL}, 1190.57),
        ({**HALF_AMP, **QUERIES}, 940.88),
        ({**BF16, "padded_batches": True}, 1305.38),
    ],
)
def test_torchs_own_count(more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(SMALL, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)


def test_layers_route_as_the_config_lists_them() -> None:
    facts = models.from_config({**SMALL, "mlp_layer_types": ["sparse", "dense", "sparse", "sparse"]})
    assert [kind.routed for kind in kinds(facts)] == [True, False, True, True]
    assert [kind.window for kind in kinds(facts)] == [128, 128, 128, None]
