"""OPT-350m's kind, whose embeddings go through a product, against torch's own count.

``bench.fake_tensors`` and ``bench.fake_evaluation`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD,
and of an evaluation, of 4 x 512 tokens each.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import GC
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

OPT: dict[str, Any] = {
    "model_type": "opt", "vocab_size": 1000, "hidden_size": 512, "word_embed_proj_dim": 256, "ffn_dim": 1024,
    "num_hidden_layers": 2, "num_attention_heads": 8, "max_position_embeddings": 1024, "do_layer_norm_before": False,
    "dropout": 0.1, "pad_token_id": 1,
}  # fmt: skip
PLAIN = {"gradient_checkpointing": False}
LORA = {
    **AMP, "method": "lora", "lora_rank": 16, "lora_targets": "all-linear", "lora_dropout": 0.0, "lora_dtype": "fp32",
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "counted", "evaluated"),
    [
        (BF16, 81.671, 30.592),
        (AMP, 116.671, 50.343),
        ({**AMP, **GC}, 80.921, 51.343),
        (FP32, 135.683, 52.063),
        (HALF_AMP, 93.687, 30.592),
        (LORA, 129.726, 53.540),
        ({**LORA, **GC}, 90.080, 54.540),
    ],
)
def test_torchs_own_count(more: dict[str, Any], counted: float, evaluated: float) -> None:
    """The graph keeps the copies that autocast made for the product, which the cache has in the forward; a leaf's is
    cached without a graph as well. What comes behind the layers has no copy yet while they run."""
    found = step(OPT, 4, 512, {**PLAIN, **more, "evaluation": {"batch_size": 4}})
    largest = {phase: max(m.allocated for m in found.moments if m.phase == phase) for phase in ("backward", "evaluate")}
    assert largest["backward"] / MIB == pytest.approx(counted, rel=7e-4)
    assert largest["evaluate"] / MIB == pytest.approx(evaluated, rel=1.2e-3)
