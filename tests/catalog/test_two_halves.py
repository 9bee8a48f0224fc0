"""Encoders with a decoder: of which it is counted what their halves keep (not of LED)."""

from __future__ import annotations

import pytest

from lintfit.catalog import models
from lintfit.memory.activations.families import known


@pytest.mark.parametrize(
    ("model", "counted"),
    [
        ("allenai/led-base-16384", False),
        ("facebook/blenderbot-400M-distill", True),
        ("facebook/m2m100_418M", True),
        ("facebook/nllb-200-3.3B", True),
    ],
)
def test_what_their_halves_keep_is_counted(model: str, counted: bool) -> None:
    facts = models.lookup(model)
    assert facts is not None and known(facts) is counted
