"""Zamba's layers, some of which share a block, against torch's own count of small models under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD. The decay, which a model that
is not loaded has in fp32 whatever its dtype (``torch.log`` of an fp32 range), was cast as loading casts it.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, LORA, REENTRANT
from tests.memory.activations.steps import AMP, BF16, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "zamba", "vocab_size": 1000, "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 3,
    "num_attention_heads": 8, "num_key_value_heads": 8, "layers_block_type": ["hybrid", "hybrid", "mamba"],
}  # fmt: skip
WIDE: dict[str, Any] = {
    **SMALL, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 5, "num_attention_heads": 16,
    "num_key_value_heads": 16, "layers_block_type": ["mamba", "hybrid", "hybrid", "hybrid", "mamba"],
}  # fmt: skip
FEW = {**LORA, "lora_targets": ["q_proj", "v_proj"], "lora_dtype": "fp32"}
ALL = {**EVERY, "lora_dtype": "fp32"}


@pytest.mark.parametrize(
    ("batch", "more", "counted"),
    [
        (3, BF16, 188.24),
        (1, BF16, 77.87),
        (1, {**BF16, "attention": "eager"}, 78.19),
        (3, {**BF16, **GC}, 109.61),
        (3, {**BF16, **REENTRANT}, 109.79),
        (3, {**AMP, **GC}, 155.73),
        (3, {**AMP, **REENTRANT}, 166.09),
        (3, {**HALF_AMP, **ALL}, 189.88),
        (3, {**AMP, **FEW, "lora_dropout": 0.05}, 227.78),
        (3, {**BF16, "padded_batches": True}, 188.28),
        (3, {**AMP, "padded_batches": True}, 236.23),
    ],
)
def test_torchs_own_count(batch: int, more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(SMALL, batch, 60, more).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 953.94),
        (AMP, 1889.48),
        ({**BF16, **GC}, 938.56),
        ({**BF16, "gradient_accumulation_steps": 2}, 1250.73),
        ({**AMP, "gradient_accumulation_steps": 2}, 2540.19),
        ({**BF16, **REENTRANT, "gradient_accumulation_steps": 2}, 985.78),
    ],
)
def test_gradients_of_shared_parameters(more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(WIDE, 1, 32, more).allocated_bytes / MIB == pytest.approx(counted, rel=1e-4)


@pytest.mark.parametrize(("more", "counted"), [(BF16, 49.59), (AMP, 91.21)])
def test_an_evaluation(more: dict[str, Any], counted: float) -> None:
    evaluated = {"evaluation": {"batch_size": 4}, "gpu_memory_gib": 1000, **GC, **more}
    moments = step(SMALL, 1, 60, evaluated).moments
    largest = max(moment.allocated for moment in moments if moment.phase == "evaluate")
    assert largest / MIB == pytest.approx(counted, rel=3e-4)


def test_kernels_keep_less() -> None:
    plain = step(SMALL, 3, 256, {**BF16, "gradient_checkpointing": False})
    packaged = step(
        SMALL, 3, 256, {**BF16, "gradient_checkpointing": False, "fused_kernels": ["mamba_ssm", "causal_conv1d"]}
    )
    assert packaged.allocated_bytes < plain.allocated_bytes / 2
