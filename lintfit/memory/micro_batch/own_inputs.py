"""Inputs that every layer has of its own (Gemma 3n, Gemma 4 E2B and E4B): one tensor for all, made before them."""

from __future__ import annotations

from typing import NamedTuple

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.attention import Heads
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.families import traits
from lintfit.memory.activations.kinds import lends, stream_width
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.tape import rounded


class OwnInputs(NamedTuple):
    """In bytes: ``kept`` until the end of the backward, and of that ``graphed`` by a graph alone; ``waiting`` beside
    each layer while that runs backward."""

    kept: int = 0
    waiting: tuple[int, ...] = ()
    graphed: int = 0


_NONE = OwnInputs()


class _How(NamedTuple):
    """Sequences and tokens of each, bytes of an element of the stream and of the embeddings, and how layers are
    checkpointed."""

    batch: int
    seq: int
    stream: int
    embedded: int
    checkpoints: bool
    reentrant: bool

    def size(self, width: int) -> int:
        """Bytes of a tensor of so many elements a token."""
        return rounded(self.batch * self.seq * width * self.embedded)


def own_inputs(
    facts: ModelFacts, recipe: Recipe, batch: int, seq: int, stream: int, embedded: int, *, checkpoints: bool,
    reentrant: bool,
) -> OwnInputs:  # fmt: skip
    """What the layers' own inputs take outside of the layers, and what their shared keys and values do.

    The embeddings go through a product as wide as all layers' inputs together and a norm, what the tokens have in
    another table is added, and the sum is scaled (``Gemma4TextModel.project_per_layer_inputs``). Each slice's gradient
    is one of the whole; so there is always one that the others are added to.

    The gradients of keys and values that later layers share wait in the same way. Checkpointed layers hold them in
    their ``KVSharingDict``, and make them again with a graph of their own, which lives as long as the layers below have
    that.
    """
    if traits(facts).shares is None:
        return _NONE
    from lintfit.memory.activations import gemma4

    how = _How(batch, seq, stream, embedded, checkpoints, reentrant)
    waiting = [0] * facts.layers
    shared = 0
    for lender, shape in lends(facts).items():
        states = 2 * how.size(shape.keys * shape.dim)
        shared += states if checkpoints else 0
        again = _left_behind(facts, recipe, shape, how) - states if checkpoints else 0
        for index in range(facts.layers - 1):
            waiting[index] += states if index >= lender else again
    narrow = gemma4.narrow(facts)
    if not narrow:
        return OwnInputs(shared, tuple(waiting), shared)
    wide = facts.layers * narrow
    if gemma4.own_inputs_flow(recipe, checkpointed=checkpoints):
        waiting = [*(size + how.size(wide) for size in waiting[:-1]), waiting[-1]]
    graphed = _projected(facts, recipe, narrow, how) + shared
    return OwnInputs(graphed + how.size(wide), tuple(waiting), graphed)


def _projected(facts: ModelFacts, recipe: Recipe, narrow: int, how: _How) -> int:
    """Bytes of what the projection of the embeddings and its norm save, and the streams that are made of them."""
    from lintfit.memory.activations import gemma3n, gemma4

    t = Layer(facts, recipe)
    x = t.new(facts.hidden, how.embedded, not recipe.frozen or how.checkpoints)
    several = traits(facts).streams is not None
    x.storage.external = how.checkpoints and not several
    projected = t.map(t.linear(gemma4.OWN_PROJECTION, x, facts.hidden, facts.layers * narrow))
    gemma4.norm(t, projected, narrow)
    if several:
        gemma3n.apart(t, x)
    return sum(storage.size(how.batch, how.seq) for storage in t.saved())


def _left_behind(facts: ModelFacts, recipe: Recipe, shape: Heads, how: _How) -> int:
    """Bytes of keys and values and of what their graph saves, from a layer's input on.

    Of a reentrantly checkpointed layer the graph has run backward: its input is left, and that one's gradient.
    """
    from lintfit.memory.activations import gemma3n, gemma4

    if how.reentrant:
        states = rounded(how.batch * how.seq * stream_width(facts) * how.stream)
        return 2 * states + 2 * how.size(shape.keys * shape.dim)
    t = Layer(facts, recipe)
    x = t.new(stream_width(facts), how.stream)
    taken = x if traits(facts).streams is None else gemma3n.foreseen(t, x)
    made = gemma4.keys_and_values(t, gemma4.norm(t, taken), shape)
    storages = dict.fromkeys([*t.saved(), *(var.storage for var in made)])
    return sum(storage.size(how.batch, how.seq) for storage in storages)
