"""OpenAI's first GPT.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from lintfit.catalog import models


def test_the_published_model() -> None:
    facts = models.lookup("openai-community/openai-gpt")
    assert facts is not None
    assert facts.parameters == 116_534_784
