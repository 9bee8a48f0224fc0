"""The image encoders of vision-language models on tapes: what their layers save for a patch.

A tape's sequences are images and its tokens positions in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import replace
from lintfit.memo import Memo
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.profile import Bare, Form, bare_of, recorded
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.tape import Var, tokens
from lintfit.memory.activations.towers import glm4v, mllama
from lintfit.memory.activations.towers.connectors import ITSELF, LAYERED, counted, inner_merge, merge
from lintfit.memory.activations.towers.encoder import CHANNELS, block, mask_item, stem
from lintfit.memory.activations.towers.order import handed_on, inner_merges, order
from lintfit.memory.activations.towers.results import results
from lintfit.memory.activations.towers.style import Style, known, style, tower_of

__all__ = [
    "CHANNELS",
    "ITSELF",
    "LAYERED",
    "Style",
    "counted",
    "form",
    "handed_on",
    "inner_merges",
    "known",
    "mask_item",
    "mllama",
    "order",
    "results",
    "style",
    "tower_of",
    "without_graph",
]

WRITERS: Mapping[str, Callable[[Layer, Var], Var]] = {
    "block": block,
    "bridge": mllama.bridge,
    "gated_block": mllama.gated_block,
    "inner_merge": inner_merge,
    "merge": merge,
    "merge, checkpointed": partial(merge, checkpointed="once"),
    "merge, reentrant": partial(merge, checkpointed="reentrant"),
}

STEMS = ("stem", "adapted_stem")
"""What stands in front of the layers, without an adapter on its convolution and with one."""

_FORMS: Memo[Form] = Memo(512)
_BARE: Memo[Bare] = Memo(512)


def form(
    facts: ModelFacts, recipe: Recipe, part: str, *, stream: int, flows: bool, watched: bool, batched: bool
) -> Form:
    """The form of one part of the encoder: one of :data:`STEMS`, or of :data:`WRITERS`.

    ``flows``: whether its input needs a gradient. ``watched``: whether the forward pass is followed, too.
    """
    key = recipe, part, stream, flows, watched, batched
    return _FORMS.get(facts, key, lambda: _written(facts, recipe, part, stream, flows, watched, batched))


def without_graph(facts: ModelFacts, recipe: Recipe, part: str, *, stream: int, batched: bool) -> Bare:
    """The pass of one of :data:`WRITERS` that leaves no graph."""

    def written() -> Bare:
        t = _tape(facts, recipe, watched=True, batched=batched, graph=False)
        x = t.new(tower_of(facts).hidden, stream, False, per=tokens)
        x.storage.external = True
        WRITERS[part](t, x)
        return bare_of(t, x)

    return _BARE.get(facts, (recipe, part, stream, batched), written)


def _tape(facts: ModelFacts, recipe: Recipe, *, watched: bool, batched: bool, graph: bool = True) -> Layer:
    """A tape for a part of the encoder, which knows nothing of kernels and caches for the text."""
    how = style(facts)
    plain = replace(recipe, padded=how.padded, liger=False, kernels=frozenset(), litgpt=False, copies_states=False)
    plain = replace(plain, returns_states=False)
    return Layer(facts, plain, watched=watched, batched=batched and not how.packed, graph=graph)


def _written(
    facts: ModelFacts, recipe: Recipe, part: str, stream: int, flows: bool, watched: bool, batched: bool
) -> Form:
    tower, how = tower_of(facts), style(facts)
    t = _tape(facts, recipe, watched=watched, batched=batched)
    if part in STEMS:
        x = t.new(CHANNELS * tower.patch**2 * how.frames, 4, False)
        x.storage.external = True  # the batch holds its pixels
        y = stem(t, x, flows, adapted=part == "adapted_stem")
        return recorded(t, x, glm4v.with_positions(t, y) if how.sampled else y)
    x = t.new(tower.hidden, stream, flows, per=tokens)
    x.storage.external = watched or (part == "inner_merge" and flows)  # the next layer has the same input
    return recorded(t, x, WRITERS[part](t, x))
