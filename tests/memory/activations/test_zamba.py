"""Zamba's layers, some of which share a block.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

from tests.memory.activations.steps import BF16, step

SMALL: dict[str, Any] = {
    "model_type": "zamba", "vocab_size": 1000, "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 3,
    "num_attention_heads": 8, "num_key_value_heads": 8, "layers_block_type": ["hybrid", "hybrid", "mamba"],
}  # fmt: skip


def test_kernels_keep_less() -> None:
    plain = step(SMALL, 3, 256, {**BF16, "gradient_checkpointing": False})
    packaged = step(
        SMALL, 3, 256, {**BF16, "gradient_checkpointing": False, "fused_kernels": ["mamba_ssm", "causal_conv1d"]}
    )
    assert packaged.allocated_bytes < plain.allocated_bytes / 2
