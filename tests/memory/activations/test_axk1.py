"""A.X K1's layers, one dense and one of experts.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

import pytest

from lintfit.catalog import models


def test_the_published_model_has_as_many_parameters_as_its_card_says() -> None:
    facts = models.lookup("skt/A.X-K1")
    assert facts is not None
    assert facts.parameters == pytest.approx(519e9, rel=2e-3)
