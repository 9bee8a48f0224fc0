"""DiffLlama's layers.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

import pytest

from lintfit.catalog import models


def test_the_published_model() -> None:
    facts = models.lookup("kajuma/DiffLlama-1B")
    assert facts is not None and facts.parameters == pytest.approx(1.38e9, rel=0.1)
