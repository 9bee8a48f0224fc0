"""Chameleon's layers and head.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

import pytest

from lintfit.catalog import models


def test_the_published_model() -> None:
    facts = models.lookup("facebook/chameleon-7b")
    assert facts is not None and facts.parameters == pytest.approx(7.04e9, rel=0.01)
