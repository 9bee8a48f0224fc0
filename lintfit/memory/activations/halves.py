"""What the layers of all models of an encoder and a decoder have in common."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.recipe import Beside
from lintfit.memory.activations.tape import Var


def decodes(facts: ModelFacts) -> bool:
    """Whether these are the facts of the decoder alone (:mod:`.micro_batch.encoder_decoder`)."""
    return bool(facts.config.get("is_decoder"))


def crosses(facts: ModelFacts, index: int) -> str:
    """Every layer of the decoder attends to the encoder's states; see :func:`.mllama.crosses`."""
    if not decodes(facts):
        return ""
    return "last cross" if index == facts.layers - 1 else "cross"


def keys_and_values(
    t: Layer, seen: Var, beside: Beside | None, *, last: bool, names: tuple[str, str] = ("k_proj", "v_proj")
) -> tuple[tuple[str, Var], tuple[str, Var]]:
    """What the projections of keys and of values take.

    The encoder's states are a leaf of a layer that reentrant checkpointing runs again, of which autocast has one copy.
    All layers but the ``last`` add to their gradient.
    """
    if beside is not None and t.leaf is not None and t.recipe.autocast:
        seen = t.cast(seen if last else t.added(seen), 2)
    elif beside is not None and not last:
        return (names[0], t.added(seen)), (names[1], t.added(seen))
    return (names[0], seen), (names[1], seen)
