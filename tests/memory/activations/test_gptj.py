"""GPT-J, CodeGen, GPT-Neo and MPT against torch's own count of small ones.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a step with SGD and eager attention.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import GC
from tests.memory.activations.steps import AMP, BF16, MIB, step

POSITIONS: dict[str, Any] = {"vocab_size": 1000, "n_positions": 2048}
CONFIGS: dict[str, dict[str, Any]] = {
    "gptj": {"n_embd": 512, "n_layer": 2, "n_head": 8, "rotary_dim": 32, **POSITIONS},
    "codegen": {"n_embd": 512, "n_layer": 2, "n_head": 8, "rotary_dim": 32, **POSITIONS},
    "gpt_neo": {
        "hidden_size": 512,
        "num_layers": 2,
        "num_heads": 8,
        "vocab_size": 1000,
        "max_position_embeddings": 2048,
        "attention_types": [[["global", "local"], 1]],
    },
    "mpt": {"d_model": 512, "n_layers": 2, "n_heads": 8, "vocab_size": 1000, "max_seq_len": 2048},
}


@pytest.mark.parametrize(
    ("name", "more", "counted"),
    [
        ("gptj", BF16, 671.0),
        ("gptj", {**BF16, **GC}, 436.51),
        ("gptj", AMP, 731.96),
        ("codegen", BF16, 672.0),
        ("codegen", {**BF16, **GC}, 437.01),
        ("codegen", AMP, 724.94),
        ("gpt_neo", BF16, 680.56),
        ("gpt_neo", {**BF16, **GC}, 442.54),
        ("gpt_neo", AMP, 740.55),
        ("mpt", BF16, 644.52),
        ("mpt", {**BF16, **GC}, 426.56),
        ("mpt", AMP, 678.48),
    ],
)
def test_positions_are_made_where_the_class_makes_them(name: str, more: dict[str, Any], counted: float) -> None:
    """GPT-J's and CodeGen's layers make tables of their own, CodeGen's in fp32; the other two have none."""
    config = {"model_type": name, **CONFIGS[name]}
    found = step(config, 1, 2048, {"gradient_checkpointing": False, "attention": "eager", **more})
    assert found.allocated_bytes / MIB == pytest.approx(counted, rel=0.0002)
