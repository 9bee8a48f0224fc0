"""LFM 3: short convolutions, attention within windows and to everything.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from lintfit.catalog import models
from lintfit.memory.activations.kinds import kinds


def test_the_published_models_layers() -> None:
    facts = models.lookup("LiquidAI/LFM3-1.7B")
    assert facts is not None
    found = kinds(facts)
    assert [sum(kind.mixer == "conv" for kind in found), sum(kind.window == 256 for kind in found)] == [13, 5]
