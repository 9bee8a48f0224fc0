"""BioGPT's layers.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

import pytest

from lintfit.catalog import models


def test_the_published_model() -> None:
    facts = models.lookup("microsoft/biogpt")
    assert facts is not None and facts.parameters == pytest.approx(346.8e6, rel=0.01)
