"""What the layers of all models of an encoder and a decoder have in common."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var


def decodes(facts: ModelFacts) -> bool:
    """Whether these are the facts of the decoder alone (:mod:`.micro_batch.encoder_decoder`)."""
    return bool(facts.config.get("is_decoder"))


def crosses(facts: ModelFacts, index: int) -> str:
    """Every layer of the decoder attends to the encoder's states; see :func:`.mllama.crosses`."""
    if not decodes(facts):
        return ""
    return "last cross" if index == facts.layers - 1 else "cross"


def alone(t: Layer, x: Var) -> bool:
    """Whether reentrant checkpointing runs the layer again that ``x`` goes into: all that it was given are leaves then,
    with a gradient of their own."""
    return x.storage.external and not t.early


def states(t: Layer, *, last: bool) -> tuple[Var, Var]:
    """The encoder's states as the projections of keys and of values take them.

    All layers but the ``last`` add to their gradient. Of a leaf autocast has one copy, until the
    layer has been run again.
    """
    beside = t.recipe.beside
    assert beside is not None
    seen = t.new(t.facts.hidden, beside.item, beside.flows, per=beside.positions)
    seen.storage.external = True
    if t.leaf is not None and t.recipe.autocast:
        half = t.cast(seen if last else t.added(seen), 2)
        t.lasting = (*t.lasting, half)
        return half, half
    return (seen, seen) if last else (t.added(seen), t.added(seen))
