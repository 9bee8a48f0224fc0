"""A vision-language model's language model as a model of its own, whose layers the rest of the estimate counts."""

from __future__ import annotations

from dataclasses import replace

from lintfit.catalog.facts import ModelFacts

_LANGUAGE: dict[int, tuple[ModelFacts, ModelFacts]] = {}
_LARGEST = 1024


def language(facts: ModelFacts) -> ModelFacts:
    """The facts with ``model_type`` and config of the language model; the same object for the same facts.

    A model that only reads is its own language model.
    """
    if not facts.text_type:
        return facts
    hit = _LANGUAGE.get(id(facts))
    if hit is None or hit[0] is not facts:
        if len(_LANGUAGE) >= _LARGEST:
            _LANGUAGE.clear()
        text = replace(facts, model_type=facts.text_type, config=facts.text_config, vision=None, text_type="")
        hit = _LANGUAGE[id(facts)] = facts, text
    return hit[1]
