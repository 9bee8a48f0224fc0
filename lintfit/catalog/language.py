"""A vision-language model's language model as a model of its own, whose layers an estimate counts."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import replace
from lintfit.memo import Memo

_LANGUAGE: Memo[ModelFacts] = Memo()


def language(facts: ModelFacts) -> ModelFacts:
    """The facts with ``model_type`` and config of the language model; the same object for the same facts.

    A model that only reads is its own language model.
    """
    if not facts.text_type:
        return facts
    return _LANGUAGE.get(facts, "", lambda: _text(facts))


def _text(facts: ModelFacts) -> ModelFacts:
    return replace(
        facts,
        model_type=facts.text_type,
        config=facts.text_config,
        code=facts.text_code,
        vision=None,
        text_type="",
    )
