"""What is alive while an image encoder turns pixels into features: where that leaves no graph, and where it does.

Sources: transformers ``modeling_<model_type>.py``, ``get_image_features`` and the encoder's classes.
"""

from __future__ import annotations

from lintfit.frozen import replace
from lintfit.memory.activations.form import Live
from lintfit.memory.activations.recipe import Recipe, evaluating, untrained
from lintfit.memory.activations.tape import rounded
from lintfit.memory.activations.towers import (
    CHANNELS,
    Style,
    form,
    handed_on,
    inner_merges,
    mllama,
    order,
    results,
    style,
    tower_of,
)
from lintfit.memory.activations.towers import without_graph as pass_of
from lintfit.memory.loss.preference import sequences
from lintfit.memory.micro_batch.autocast import cached_copies
from lintfit.memory.micro_batch.step import Step
from lintfit.memory.micro_batch.vision.held import SELECTED_STATES, into_the_connector
from lintfit.memory.micro_batch.vision.images import pictures
from lintfit.memory.micro_batch.vision.parts import inner_features
from lintfit.memory.micro_batch.vision.shapes import (
    PIXEL,
    image_mask,
    pixel_bytes,
    recipe_of,
    sequences_of,
    stream_of,
    turns,
)
from lintfit.memory.micro_batch.vision.trained import trains_connector, trains_encoder
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.parameters import inventory
from lintfit.memory.tensors.weights import Inventory
from lintfit.memory.versions import transformers_version

CASTS_PIXELS = frozenset({"idefics2", "idefics3", "internvl", "smolvlm"})
"""Model types, beside those whose encoder is Qwen's, that cast pixels before the encoder does, in a variable of their
own."""

MASKS_PIXELS = frozenset({"idefics2", "idefics3", "smolvlm"})
"""Model types that say of every pixel whether it is padding, in a byte."""

COPIES_PIXELS = frozenset({"llava_next", "llava_next_video", "llava_onevision"})
"""Model types that put the pictures of all images together in a tensor of its own."""


def features(spec: Spec) -> Live:
    """What is alive at the worst point of the images' encoding where that leaves no graph; ``casts``: autocast's cached
    copies of the encoder's weights as far as they are made.

    A layer beside what the encoder's caller has names for; what turns the last states into features; and where images
    stand beside the text, the mask over them.
    """
    how, recipe = style(spec.facts), recipe_of(spec)
    batch, seq = sequences_of(spec, recipe, how)
    stream = stream_of(recipe, how)
    state = rounded(batch * seq * tower_of(spec.facts).hidden * stream)
    copies = cached(spec, recipe)
    around = Live(_words(spec, how, recipe) + _pixels(spec, how, recipe))
    parts = {name for name, _ in order(spec.facts)} & {"block", "gated_block"}
    bare = {
        name: pass_of(spec.facts, _run(spec, recipe, name), name, stream=stream, batched=batch > 1)
        for name in (*sorted(parts), "merge")
    }
    later = bare["merge"].cached(batch, seq)
    found = []
    for name in parts:
        alive = bare[name].peak(batch, seq)
        beside = _beside_a_layer(spec, how, recipe, state)
        found.append(Live(alive.activations + beside, casts=max(0, copies - later + alive.casts)))
    merging = bare["merge"].peak(batch, seq)
    held = results(spec.facts)
    several = state * (handed_on(spec.facts) + bool(how.unused)) if held.every else 0
    if held.normed and not held.every:  # the connector's tape begins with the norm, whose input is gone behind it
        several -= state
    several += inner_merges(spec.facts) * inner_features(spec)
    if not how.joins:
        found.append(Live(merging.activations + several, casts=max(0, copies + merging.casts)))
    else:
        stacked, masking = _joined(spec, recipe, state)
        stacked += _patches(spec, how, recipe) + image_mask(spec, recipe)
        found += [Live(size, casts=copies) for size in (stacked, masking)]
    return around.plus(max(found, key=lambda live: live.total))


def with_graph(spec: Spec, step: Step) -> Live | None:
    """What is alive in the encoder's last layer where it leaves a graph and a mask that the graph does not keep, which
    is gone when the text begins; None where there is none of both."""
    how, recipe = style(spec.facts), recipe_of(spec)
    mask = image_mask(spec, recipe)
    stretches = step.stretches[: step.before - how.joins]  # without what is handed over beside the text
    if not mask or len(stretches) < 2:
        return None
    kept = Live()
    for part in stretches[:-1]:
        kept = kept.plus(step.keeps(part))
    batch, seq = sequences_of(spec, recipe, how)
    stream = stream_of(recipe, how)
    last = "gated_block" if how.joins else "block"
    if stretches[-2].checkpointed:
        beside = pass_of(spec.facts, _run(spec, recipe, last), last, stream=stream, batched=batch > 1)
        passing = beside.peak(batch, seq).activations
    else:
        run = recipe if trains_encoder(spec) else replace(recipe, frozen=True)
        own = form(spec.facts, run, last, stream=stream, flows=True, watched=True, batched=batch > 1)
        passing = own.passing(batch, seq) - stretches[-2].layer.saved.activations
    around = _words(spec, how, recipe) + _pixels(spec, how, recipe) + _patches(spec, how, recipe)
    size = kept.activations + max(0, passing) + around + mask + turns(spec, recipe)
    return Live(size, kept.logits, max(kept.casts, cached(spec, recipe)), kept.temporaries)


def cached(spec: Spec, recipe: Recipe) -> int:
    """Bytes of autocast's copies of the encoder's own weights and of the connector's."""
    seen = Inventory.of(tuple([weight for weight in inventory(spec).weights if weight.where == "vision"]))
    return cached_copies(recipe, seen, experts=True) if recipe.autocast and spec.engine != "fsdp" else 0


def _run(spec: Spec, recipe: Recipe, part: str) -> Recipe:
    """How a part runs without a graph."""
    trains = trains_connector(spec) if part == "merge" else trains_encoder(spec)
    recipe = evaluating(recipe)
    if not trains:
        return untrained(replace(recipe, lora=None))
    return untrained(recipe) if recipe.frozen or not recipe.autocast or recipe.weights != 4 else recipe


def _words(spec: Spec, how: Style, recipe: Recipe) -> int:
    """Bytes of the words' embeddings, which are looked up before, but where images stand beside the text."""
    return 0 if how.joins else rounded(sequences(spec) * spec.seq_len * spec.facts.hidden * recipe.weights)


def _pixels(spec: Spec, how: Style, recipe: Recipe) -> int:
    """Bytes of the batch's pixels, and of the copy that ``get_image_features`` has a name for."""
    pixels = pixel_bytes(spec)
    if spec.facts.model_type in COPIES_PIXELS:
        return 2 * pixels
    masks = rounded(pixels // (CHANNELS * PIXEL)) if spec.facts.model_type in MASKS_PIXELS else 0
    casts = (how.apart or spec.facts.model_type in CASTS_PIXELS) and recipe.weights != PIXEL
    return pixels + masks + (pixels * recipe.weights // PIXEL if casts else 0)


def _patches(spec: Spec, how: Style, recipe: Recipe) -> int:
    """Bytes of the patches' embeddings as the convolution gave them: Llama 3.2 Vision has a name for them, Pixtral a
    list."""
    if not how.masked:
        return 0
    seen, item = pictures(spec), 2 if recipe.autocast else recipe.weights
    return rounded(seen.number * seen.patches * tower_of(spec.facts).hidden * item)


def _beside_a_layer(spec: Spec, how: Style, recipe: Recipe, state: int) -> int:
    """Bytes of what stands beside a layer of the encoder.

    Tables and mask, and its first input, which the encoder's caller has named; Qwen's puts the layers' results in its
    place, and Qwen 3's has the positions that were added, in fp32, and what mergers have made of earlier states.
    """
    held, tower = results(spec.facts), tower_of(spec.facts)
    beside = turns(spec, recipe) + image_mask(spec, recipe)
    if how.apart:
        seen = pictures(spec)
        placed = rounded(seen.number * seen.positions * tower.hidden * 4) if how.places else 0
        return beside + placed + how.opening * state + inner_merges(spec.facts) * inner_features(spec)
    if how.joins:
        return beside + (tower.layers - 1) * state + _patches(spec, how, recipe)  # a list of what all layers gave
    listed = handed_on(spec.facts)
    if held.every and transformers_version(spec) < SELECTED_STATES:
        listed = tower.layers
    return beside + (1 + listed) * state + _patches(spec, how, recipe)


def _joined(spec: Spec, recipe: Recipe, state: int) -> tuple[int, int]:
    """Bytes of what all layers gave with some of it stacked, and put beside the last one's; and of the mask over the
    images as it is made of whole numbers, one for every token and position (``_prepare_cross_attention_mask``)."""
    tower, several = tower_of(spec.facts), handed_on(spec.facts)
    wide, images = into_the_connector(spec)[0], 1 if spec.images is None else spec.images
    seen = sequences(spec) * images * mllama.seen(tower)
    states = rounded(seen * spec.facts.hidden * (2 if recipe.autocast else recipe.weights))
    # int64; one minus it in fp32, and its cast, or beside fp32 what is filled in, and where.
    each = 8 + 4 + 2 if recipe.weights == 2 else 8 + 4 + 4 + 1
    return (tower.layers + several) * state + wide, wide + states + seen * spec.seq_len * each
