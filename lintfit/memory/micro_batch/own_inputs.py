"""Inputs that every layer has of its own (Gemma 3n, Gemma 4 E2B and E4B): one tensor for all, made before them."""

from __future__ import annotations

from lintfit.memory.activations import gemma3n, gemma4
from lintfit.memory.activations.attention import Heads
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.kinds import lends, stream_width
from lintfit.memory.activations.tape import rounded
from lintfit.memory.micro_batch.around import Around
from lintfit.memory.micro_batch.model import Model
from lintfit.memory.micro_batch.stream import Shape


def own_inputs(model: Model, shape: Shape) -> Around:
    """What the layers' own inputs take outside of the layers, and what their shared keys and values do.

    The embeddings go through a product as wide as all layers' inputs together and a norm, what the tokens have in
    another table is added, and the sum is scaled (``Gemma4TextModel.project_per_layer_inputs``). Each slice's gradient
    is one of the whole; so there is always one that the others are added to.

    The gradients of keys and values that later layers share wait in the same way. Checkpointed layers hold them in
    their ``KVSharingDict``, and make them again with a graph of their own, which lives as long as the layers below have
    that.
    """
    facts, checkpoints = model.facts, model.checkpoints
    waiting = [0] * facts.layers
    shared = 0
    for lender, heads in lends(facts).items():
        states = 2 * _size(model, shape, heads.keys * heads.dim)
        shared += states if checkpoints else 0
        again = _left_behind(model, shape, heads) - states if checkpoints else 0
        for index in range(facts.layers - 1):
            waiting[index] += states if index >= lender else again
    narrow = gemma4.narrow(facts)
    if not narrow:
        return Around(graphed=shared, waiting=tuple(waiting))
    wide = _size(model, shape, facts.layers * narrow)
    if gemma4.own_inputs_flow(model.lookup, checkpointed=checkpoints):
        waiting = [*(size + wide for size in waiting[:-1]), waiting[-1]]
    return Around(kept=wide, graphed=_projected(model, shape, narrow) + shared, waiting=tuple(waiting))


def _size(model: Model, shape: Shape, width: int) -> int:
    """Bytes of a tensor of so many elements a token."""
    return rounded(shape.batch * shape.seq * width * model.embedded)


def _projected(model: Model, shape: Shape, narrow: int) -> int:
    """Bytes of what the projection of the embeddings and its norm save, and the streams that are made of them."""
    facts = model.facts
    t = Layer(facts, model.lookup)
    x = t.new(facts.hidden, model.embedded, not model.lookup.frozen or model.checkpoints)
    several = model.own.streams is not None
    x.storage.external = model.checkpoints and not several
    projected = t.map(t.linear(gemma4.OWN_PROJECTION, x, facts.hidden, facts.layers * narrow))
    gemma4.norm(t, projected, narrow)
    if several:
        gemma3n.apart(t, x)
    return sum(storage.size(shape.batch, shape.seq) for storage in t.saved())


def _left_behind(model: Model, shape: Shape, heads: Heads) -> int:
    """Bytes of keys and values and of what their graph saves, from a layer's input on.

    Of a reentrantly checkpointed layer the graph has run backward: its input is left, and that one's gradient.
    """
    width = stream_width(model.facts)
    if model.reentrant:
        states = rounded(shape.batch * shape.seq * width * model.stream)
        return 2 * states + 2 * _size(model, shape, heads.keys * heads.dim)
    t = Layer(model.facts, model.lookup)
    x = t.new(width, model.stream)
    taken = x if model.own.streams is None else gemma3n.foreseen(t, x)
    made = gemma4.keys_and_values(t, gemma4.norm(t, taken), heads)
    storages = dict.fromkeys([*t.saved(), *(var.storage for var in made)])
    return sum(storage.size(shape.batch, shape.seq) for storage in storages)
