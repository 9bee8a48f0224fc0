"""DistilBERT's layers and masked-language-model head.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

import pytest

from lintfit.catalog import models


def test_the_published_model() -> None:
    facts = models.lookup("distilbert/distilbert-base-uncased")
    assert facts is not None and facts.parameters == pytest.approx(67e6, rel=0.01)
