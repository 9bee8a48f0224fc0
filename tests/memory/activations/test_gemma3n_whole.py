"""Gemma 3n with its encoders, on text alone.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

from tests.memory.activations.steps import BF16, step

SMALL: dict[str, Any] = {
    "model_type": "gemma3n",
    "text_config": {
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 10,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 128,
        "vocab_size": 32000,
        "hidden_size_per_layer_input": 64,
        "vocab_size_per_layer_input": 500,
        "num_kv_shared_layers": 5,
    },
    "audio_config": {"hidden_size": 64, "conf_num_hidden_layers": 1, "conf_num_attention_heads": 4},
}


def test_images_are_unknown() -> None:
    found = step(SMALL, 1, 1024, {**BF16, "images": 1, "gpu_memory_gib": 80})
    assert found.verdict == "unknown"
