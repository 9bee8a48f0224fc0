"""MPNet with the masked-language-model head.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from lintfit.catalog import models


def test_the_published_model() -> None:
    facts = models.lookup("microsoft/mpnet-base")
    assert facts is not None
    pooler = facts.hidden * (facts.hidden + 1)
    assert sum(tensor.total for tensor in facts.tensors if tensor.where != "head") + pooler == 109_486_464
