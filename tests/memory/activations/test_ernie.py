"""ERNIE with its masked-language-model head.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

import pytest

from lintfit.catalog import models


def test_the_published_model() -> None:
    facts = models.lookup("nghuyong/ernie-3.0-base-zh")
    assert facts is not None and facts.parameters == pytest.approx(118e6, rel=0.01)
