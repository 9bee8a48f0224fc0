"""Persimmon's layers.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

import pytest

from lintfit.catalog import models


def test_the_published_model() -> None:
    facts = models.lookup("adept/persimmon-8b-base")
    assert facts is not None and facts.parameters == pytest.approx(9.4e9, rel=0.01)
