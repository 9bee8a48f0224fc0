"""LFM 3: short convolutions, attention within windows and to everything, against torch's own count of small models.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, LORA, REENTRANT
from lintfit.catalog import models
from lintfit.memory.activations.kinds import kinds
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

WIDTHS: dict[str, Any] = {
    "model_type": "lfm3", "hidden_size": 1024, "intermediate_size": 2048, "num_attention_heads": 16,
    "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 1000, "sliding_window": 128,
}  # fmt: skip
MIXED = {**WIDTHS, "num_hidden_layers": 4, "layer_types": ["conv", "full_attention", "sliding_attention", "conv"]}
BARE = {
    **WIDTHS, "num_hidden_layers": 2, "layer_types": ["full_attention", "conv"], "use_sandwich_norm": False,
    "use_attention_gate": False, "tie_word_embeddings": False,
}  # fmt: skip
BIASED = {
    **WIDTHS, "num_hidden_layers": 2, "layer_types": ["sliding_attention"] * 2, "conv_bias": True,
    "attention_bias": True,
}  # fmt: skip
ALL = {**EVERY, "lora_dtype": "fp32"}
QUERIES = {**LORA, "lora_targets": ["q_proj", "v_proj"], "lora_dtype": "fp32"}
EAGER = {"attention": "eager"}


@pytest.mark.parametrize(
    ("config", "more", "counted"),
    [
        (MIXED, BF16, 1112.79),
        (MIXED, AMP, 1408.91),
        (MIXED, FP32, 2110.91),
        (MIXED, {**BF16, **EAGER}, 1884.29),
        (MIXED, {**BF16, **GC}, 458.83),
        (MIXED, {**BF16, **REENTRANT}, 466.83),
        (MIXED, {**HALF_AMP, **ALL}, 1035.95),
        (MIXED, {**HALF_AMP, **QUERIES}, 671.69),
        (MIXED, {**BF16, "padded_batches": True}, 1132.82),
        (BARE, BF16, 494.09),
        (BARE, {**BF16, **GC}, 294.04),
        (BIASED, AMP, 812.10),
        (BIASED, {**BF16, **EAGER}, 1553.40),
    ],
)
def test_torchs_own_count(config: dict[str, Any], more: dict[str, Any], counted: float) -> None:
    more = {"gradient_checkpointing": False, **more}
    assert step(config, 4, 1024, more).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)


@pytest.mark.parametrize(("more", "counted"), [(BF16, 162.12), (AMP, 336.29), ({**BF16, **EAGER}, 785.12)])
def test_an_evaluation(more: dict[str, Any], counted: float) -> None:
    found = step(MIXED, 1, 1024, {**GC, **more, "evaluation": {"batch_size": 4}})
    largest = max(moment.allocated for moment in found.moments if moment.phase == "evaluate")
    assert largest / MIB == pytest.approx(counted, rel=2e-4)


def test_the_published_models_layers() -> None:
    facts = models.lookup("LiquidAI/LFM3-1.7B")
    assert facts is not None and facts.parameters == 1_728_801_536
    found = kinds(facts)
    assert [sum(kind.mixer == "conv" for kind in found), sum(kind.window == 256 for kind in found)] == [13, 5]
