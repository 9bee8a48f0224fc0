"""What the model's forward has names for of the images while the layers of its text run, in bytes.

:mod:`lintfit.memory.activations.towers.results` says which model type names what.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from lintfit.catalog.language import language
from lintfit.frozen import replace
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.tape import rounded
from lintfit.memory.activations.towers import (
    handed_on,
    inner_merges,
    mllama,
    results,
    style,
    tower_of,
)
from lintfit.memory.loss.preference import sequences
from lintfit.memory.micro_batch.aside import keeps_input
from lintfit.memory.micro_batch.step import Stretch
from lintfit.memory.micro_batch.stream import stream_bytes
from lintfit.memory.micro_batch.vision.images import Pictures, pictures, tiles
from lintfit.memory.micro_batch.vision.shapes import recipe_of, stream_of
from lintfit.memory.micro_batch.vision.trained import trained_names, trains_connector
from lintfit.memory.spec import Spec
from lintfit.memory.versions import transformers_version

NEWLINES = frozenset({"llava_next", "llava_next_video", "llava_onevision"})
"""Model types that put a learnt embedding at the end of every row of an image's tiles (``image_newline``)."""


SELECTED_STATES = (5, 23)
"""The first transformers version that was read to keep of the encoder's states those alone that the model asks for
(``select_hidden_states``, huggingface/transformers#48081 of August 2026); earlier ones list all layers'."""


class Held(NamedTuple):
    """Bytes of what the model's forward has names for of the images while the text's layers run: all of it, what
    layers save of it, and what of it is there without a graph; and what of it the model gives back."""

    named: int
    saved: int
    bare: int
    answered: int


class _Sizes(NamedTuple):
    """Bytes of what one layer of the encoder gave, the same behind a norm at the encoder's end, the features as the
    connector gave them, the same as the sequence takes them, and of that where it is a tensor of its own."""

    state: int
    normed: int
    made: int
    taken: int
    apart: int


def held_of_images(spec: Spec, recipe: Recipe, encoder: tuple[Stretch, ...]) -> Held:
    """What is named of the images, and given back of them."""
    held, sizes, unused = results(spec.facts), _sizes(spec, recipe), style(spec.facts).unused
    states = _states(spec) * sizes.state
    features = held.inner + held.features + 2 * inner_merges(spec.facts)
    bare = states + sizes.normed + features * sizes.made + sizes.apart
    answered = (sizes.taken if held.answered else 0) if not held.whole else bare - sizes.apart
    saved = _saved(spec, sizes, encoder)
    answered = sizes.normed - saved + sizes.apart if held.encoded else answered
    graph = _listed(encoder, unused, sizes.state) if held.every and unused else 0
    named = bare - states + graph if graph else bare
    if held.every and held.normed and len(encoder) > 1:  # the norm's own graph, which nobody else has
        seen = pictures(spec)
        named += 2 * rounded(seen.number * seen.positions * 4)
        named += sizes.normed if sizes.normed != sizes.state else 0
    return Held(named, saved, bare, answered)


def _sizes(spec: Spec, recipe: Recipe) -> _Sizes:
    """How large the tensors are that may have names."""
    facts, seen, tower = spec.facts, pictures(spec), tower_of(spec.facts)
    held, own = results(facts), recipe_of(spec)
    wide = seen.number * seen.positions * tower.hidden
    normed = held.normed * rounded(wide * (4 if own.autocast else own.weights))
    rows = (seen.number * (tower.tokens or seen.patches // tower.merge) + _newlines(spec, seen)) * facts.hidden
    typed = 4 if held.typed else 2
    item, other = typed if own.autocast else own.weights, stream_bytes(language(facts), recipe)
    taken = rounded(rows * other) if held.features else 0
    apart = taken if held.joined or other != item else 0
    return _Sizes(rounded(wide * stream_of(own, style(facts))), normed, rounded(rows * item), taken, apart)


def _states(spec: Spec) -> int:
    """How many layers' results have names."""
    held = results(spec.facts)
    if not held.every:
        return held.states
    if transformers_version(spec) < SELECTED_STATES:
        return tower_of(spec.facts).layers + 1
    return handed_on(spec.facts) + 1 + (style(spec.facts).unused > 0)


def _saved(spec: Spec, sizes: _Sizes, encoder: tuple[Stretch, ...]) -> int:
    """Bytes that the encoder's layers, its last norm or the connector save of what has names."""
    held = results(spec.facts)
    last = held.states or (held.every and not style(spec.facts).unused)
    saved = sizes.state if last and encoder and encoder[-1].layer.keeps_input else 0
    saved += sizes.normed if held.kept and encoder else 0
    if spec.method == "full" and trains_connector(spec):  # PEFT saves a copy of its own
        saved += held.inner * sizes.made
        saved += sizes.normed if held.taken and not recipe_of(spec).autocast else 0
    return saved


def into_the_connector(spec: Spec) -> tuple[int, bool]:
    """Bytes of what goes into the projector, where a name holds it while the text's layers run; whether it is saved."""
    if not style(spec.facts).joins:
        return 0, False
    recipe, facts = recipe_of(spec), spec.facts
    stream = stream_of(recipe, style(facts))
    images = (1 if spec.images is None else spec.images) * sequences(spec)
    wide = rounded(images * mllama.seen(tower_of(facts)) * mllama.projected(facts) * stream)
    frozen = recipe.frozen or not any("multi_modal_projector" in name for name in trained_names(spec))
    return wide, keeps_input(replace(recipe, frozen=frozen), stream, "multi_modal_projector")


def _newlines(spec: Spec, seen: Pictures) -> int:
    """Tokens that end the rows of images cut into tiles; the tiles are taken to lie in a square."""
    if spec.facts.model_type not in NEWLINES:
        return 0
    each, side = tiles(spec), math.isqrt(seen.patches)
    return seen.number // each * math.isqrt(each - 1) * side


def _listed(encoder: tuple[Stretch, ...], unused: int, state: int) -> int:
    """Bytes of the last layer's result and of the graph of the layers that nobody takes; 0 where there is none.

    ``state``: bytes of one layer's result.
    """
    blocks = [part for part in encoder[:-1] if part.layer.input]
    if not blocks:
        return 0
    last = blocks[-1]
    saved = last.layer.saved.total - last.layer.saved.casts  # autocast's cache has these
    return unused * (last.layer.input if last.checkpointed else saved) + state
