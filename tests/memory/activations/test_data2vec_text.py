"""data2vec-text with its masked-language-model head.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

import pytest

from lintfit.catalog import models


def test_the_published_model() -> None:
    facts = models.lookup("facebook/data2vec-text-base")
    assert facts is not None and facts.parameters == pytest.approx(124.7e6, rel=0.01)
