"""What an older transformers makes of a model's config: differences from the newest, which the catalogue follows."""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.catalog.facts import ModelFacts, Tensor
from lintfit.frozen import replace
from lintfit.memo import Memo
from lintfit.memory.versions import before_transformers_5, release

TIED_SINCE_5 = frozenset({"t5", "mt5", "umt5"})
"""Models that transformers 5 ties whatever their config says (``T5Config``); transformers 4 asks it."""

_BUILT: Memo[ModelFacts] = Memo()


def as_of(facts: ModelFacts, versions: Mapping[str, str]) -> ModelFacts:
    """The model as the transformers version of a run builds it."""
    if facts.model_type not in TIED_SINCE_5:
        return facts
    if before_transformers_5(versions):
        own = facts.config.get("tie_word_embeddings") is False
        return _BUILT.get(facts, "own head" if own else "", lambda: untied(_told(facts)) if own else _told(facts))
    return facts if release(versions.get("transformers")) is None else _BUILT.get(facts, "", lambda: _told(facts))


def untied(facts: ModelFacts) -> ModelFacts:
    """The same model with an output layer of its own."""
    head = Tensor("lm_head.weight", (facts.vocab, facts.hidden), role="lm_head", where="head")
    return replace(facts, tied=False, tensors=(*facts.tensors, head))


def _told(facts: ModelFacts) -> ModelFacts:
    """The same without the note on what another version does."""
    from lintfit.catalog.architectures import t5

    return replace(facts, notes=tuple([note for note in facts.notes if note not in t5.NOTES]))
