"""EuroBERT with its head for masked words.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

import pytest

from lintfit.catalog import models
from lintfit.memory.activations.families import known


def test_the_published_models() -> None:
    """Their names leave the head out, which is as large as the embedding and not tied to it."""
    for size, parameters in {"210m": 210e6, "610m": 610e6, "2.1B": 2.1e9}.items():
        facts = models.lookup(f"EuroBERT/EuroBERT-{size}")
        assert facts is not None and known(facts)
        assert facts.parameters - facts.vocab * facts.hidden == pytest.approx(parameters, rel=0.03)
