"""One layer, counted: what it saves, and the worst point of its backward pass."""

from __future__ import annotations

from typing import NamedTuple

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations import family
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.litgpt import layer as litgpt_layer
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.tape import Live, backward, rounded


class Profile(NamedTuple):
    """One layer of one rank, in bytes.

    ``input``: its input, which checkpointing keeps instead of ``saved``. ``saved``: what autograd keeps without
    checkpointing (the input where an operation saves it). ``peak``: the worst point of its backward pass, with
    everything recomputed where it is checkpointed, without the input then. ``weights``: its parameter
    gradients. ``output``: its output. ``marked``: what selective checkpointing keeps beside the input.
    ``pinned``: what of all this stays after its backward, until the graph goes.
    """

    input: int
    saved: Live
    peak: Live
    weights: int
    output: int
    marked: int = 0
    pinned: int = 0


_PROFILES: dict[tuple[object, ...], tuple[ModelFacts, Profile]] = {}
_LARGEST = 4096


def profile(
    facts: ModelFacts,
    recipe: Recipe,
    batch: int,
    seq: int,
    index: int,
    *,
    kind: object,
    stream: int,
    flows: bool = True,
    checkpointed: bool = False,
    selective: bool = False,
    reentrant: bool = False,
    kept: float = 1.0,
) -> Profile:
    """The profile of layer ``index`` for ``batch`` sequences of ``seq`` tokens.

    ``kind`` is what tells this layer from the others: layers of a kind are counted once. ``stream``: bytes of an
    element of the residual stream. ``flows``: whether its input needs a gradient (not in the first layer behind
    frozen embeddings). ``kept``: see :func:`.tape.backward`.
    """
    key = (id(facts), recipe, batch, seq, kind, stream, flows, checkpointed, selective, reentrant, kept)
    hit = _PROFILES.get(key)
    if hit is not None and hit[0] is facts:
        return hit[1]
    t = Layer(facts, recipe, batch, seq, watched=checkpointed, selective=selective)
    x = t.new(t.tokens * facts.hidden, stream, flows)
    x.storage.external = checkpointed
    out = (litgpt_layer if recipe.litgpt else family(facts))(t, x, index)
    size = rounded(x.numel * x.item)
    output = rounded(out.numel * out.item)
    extra = output if checkpointed and reentrant else 0
    recompute = (t.forward if reentrant else t.early) if checkpointed else 0
    peak = backward(t, out, kept=kept, extra=extra, recompute=recompute)
    # Reentrant checkpointing runs its forward without a graph; the other kind's first graph holds the inputs, too.
    pinned = 0 if checkpointed and reentrant else t.held_by_graph()
    marked = t.marked + (pinned if checkpointed else 0)
    result = Profile(size, t.saved(), peak, t.weights(), output, marked, pinned)
    if len(_PROFILES) >= _LARGEST:
        _PROFILES.clear()
    _PROFILES[key] = (facts, result)
    return result
