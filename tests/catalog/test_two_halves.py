"""Encoders with a decoder: their published sizes, and of which it is counted what their halves keep (not of LED)."""

from __future__ import annotations

import pytest

from lintfit.catalog import models
from lintfit.memory.activations.families import known


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("allenai/led-base-16384", 161_844_480),
        ("allenai/led-large-16384", 459_801_600),
        ("facebook/blenderbot-400M-distill", 364_802_560),
        ("facebook/m2m100_418M", 483_905_536),
        ("facebook/m2m100_1.2B", 1_239_470_080),
        ("facebook/nllb-200-distilled-600M", 615_073_792),
        ("facebook/nllb-200-distilled-1.3B", 1_370_638_336),
        ("facebook/nllb-200-3.3B", 3_344_863_232),
    ],
)
def test_the_published_sizes(model: str, parameters: int) -> None:
    facts = models.lookup(model)
    assert facts is not None and facts.parameters == parameters
    assert known(facts) == (facts.model_type != "led")
