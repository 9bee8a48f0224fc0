"""LFM 2: short convolutions and attention, against torch's own count of small models under fake tensors.

``bench.fake_tensors`` on torch 2.13 and transformers 5.23, two layers, one of each kind: MiB of a whole step with SGD.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import EVERY, GC, LORA, REENTRANT
from lintfit.catalog import models
from lintfit.memory import estimate
from lintfit.memory.activations.families import known
from lintfit.memory.activations.kinds import kinds
from lintfit.memory.reading.parse import spec_from_mapping
from tests.memory.activations.steps import AMP, BF16, FP32, HALF_AMP, MIB, step

SMALL: dict[str, Any] = {
    "model_type": "lfm2", "hidden_size": 1024, "intermediate_size": 6656, "num_hidden_layers": 2,
    "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 512, "tie_word_embeddings": True,
    "layer_types": ["conv", "full_attention"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        (BF16, 230.33),
        ({**AMP, **GC}, 342.33),
        (FP32, 474.42),
        ({**HALF_AMP, **EVERY}, 241.02),
        ({**BF16, **EVERY, **GC}, 195.57),
        ({**BF16, **LORA}, 153.81),
        ({**HALF_AMP, **EVERY, **REENTRANT}, 184.15),
    ],
)
def test_torchs_own_count(more: dict[str, Any], counted: float) -> None:
    assert step(SMALL, 2, 512, more).allocated_bytes / MIB == pytest.approx(counted, rel=2e-4)


def test_older_configs_say_which_layers_attend() -> None:
    facts = models.lookup("LiquidAI/LFM2-1.2B")
    assert facts is not None
    attending = [index for index, kind in enumerate(kinds(facts)) if not kind.mixer]
    assert attending == [2, 5, 8, 10, 12, 14]
    assert known(facts)
    assert facts.intermediate == 8192


def test_a_package_for_the_convolution_saves_next_to_nothing() -> None:
    """The product behind it keeps its result either way: all that goes is what the input is filled up with."""
    base = {"model": "LiquidAI/LFM2-1.2B", **BF16, "micro_batch_size": 4, "seq_len": 4096, "gpu": "A100-80GB"}
    plain, kernels = (
        estimate(spec_from_mapping({**base, **more})) for more in ({}, {"fused_kernels": ["causal_conv1d"]})
    )
    assert plain.allocated_bytes - kernels.allocated_bytes == 10 * 4 * 2 * 2048 * 2
    assert not any("causal-conv1d" in line for line in plain.assumptions)
