"""LFM 2: short convolutions and attention.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from lintfit.catalog import models
from lintfit.memory import estimate
from lintfit.memory.activations.families import known
from lintfit.memory.activations.kinds import kinds
from lintfit.memory.reading.parse import spec_from_mapping
from tests.memory.activations.steps import BF16


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
