"""The image encoders of vision-language models on tapes: what their layers save for a patch.

A tape's sequences are images and its tokens positions in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import replace
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.profile import Form, recorded
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.tape import Var, tokens
from lintfit.memory.activations.towers import glm4v, mllama
from lintfit.memory.activations.towers.connectors import ITSELF, counted, inner_merge, merge
from lintfit.memory.activations.towers.encoder import CHANNELS, block, stem
from lintfit.memory.activations.towers.order import handed_on, order
from lintfit.memory.activations.towers.style import Style, known, style, tower_of
from lintfit.memory.memo import Memo

__all__ = [
    "CHANNELS",
    "ITSELF",
    "Style",
    "counted",
    "form",
    "handed_on",
    "known",
    "mllama",
    "order",
    "style",
    "tower_of",
]

WRITERS: Mapping[str, Callable[[Layer, Var], Var]] = {
    "block": block,
    "bridge": mllama.bridge,
    "gated_block": mllama.gated_block,
    "inner_merge": inner_merge,
    "merge": merge,
}

STEMS = ("stem", "adapted_stem")
"""What stands in front of the layers, without an adapter on its convolution and with one."""

_FORMS: Memo[Form] = Memo(512)


def form(
    facts: ModelFacts, recipe: Recipe, part: str, *, stream: int, flows: bool, watched: bool, batched: bool
) -> Form:
    """The form of one part of the encoder: one of :data:`STEMS`, or of :data:`WRITERS`.

    ``flows``: whether its input needs a gradient. ``watched``: whether the forward pass is followed, too.
    """
    key = recipe, part, stream, flows, watched, batched
    return _FORMS.get(facts, key, lambda: _written(facts, recipe, part, stream, flows, watched, batched))


def _written(
    facts: ModelFacts, recipe: Recipe, part: str, stream: int, flows: bool, watched: bool, batched: bool
) -> Form:
    tower, how = tower_of(facts), style(facts)
    plain = replace(recipe, padded=how.padded, liger=False, kernels=frozenset(), litgpt=False, copies_states=False)
    t = Layer(facts, plain, watched=watched, batched=batched and not how.packed)
    if part in STEMS:
        x = t.new(CHANNELS * tower.patch**2 * how.frames, 4, False)
        y = stem(t, x, flows, adapted=part == "adapted_stem")
        return recorded(t, x, glm4v.with_positions(t, y) if how.sampled else y)
    x = t.new(tower.hidden, stream, flows, per=tokens)
    x.storage.external = watched or part == "inner_merge"  # the next layer has the same input
    return recorded(t, x, WRITERS[part](t, x))
