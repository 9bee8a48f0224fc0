"""What an image encoder adds to a step: its layers run before the language model's, and their backward after it.

How many images a sample has only ``images`` says; without it the encoder counts in the high end of the range alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from lintfit.frozen import replace
from lintfit.memory.activations.form import Live
from lintfit.memory.activations.profile import Profile, counted
from lintfit.memory.activations.recipe import Beside, Recipe, of
from lintfit.memory.activations.tape import rounded
from lintfit.memory.activations.towers import (
    CHANNELS,
    Style,
    form,
    handed_on,
    inner_merges,
    mask_item,
    mllama,
    order,
    results,
    style,
    tower_of,
)
from lintfit.memory.loss.logits import norm_forward
from lintfit.memory.loss.preference import sequences
from lintfit.memory.micro_batch.aside import aside, gradient_beside, keeps_input
from lintfit.memory.micro_batch.autocast import APART
from lintfit.memory.micro_batch.embedding import given, opens_inputs
from lintfit.memory.micro_batch.images import Pictures, pictures, tiles
from lintfit.memory.micro_batch.language import language
from lintfit.memory.micro_batch.model_step import stream_bytes
from lintfit.memory.micro_batch.step import Step, Stretch
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.parameters import inventory
from lintfit.memory.tensors.tensor_parallel import local
from lintfit.memory.versions import transformers_version

WITHOUT_SDPA = frozenset({"minicpmv"})
"""Model types whose encoder runs FlashAttention 2 where the model is told to, and eager scores else."""

PIXEL = 4
"""Bytes of a pixel's channel as the processors make it (fp32)."""

EVERY_EMBEDDING = (5, 0)
"""The transformers version from which ``enable_input_require_grads`` hooks the image encoder's patches, too, so that a
frozen encoder has a graph (``modeling_utils.py``; earlier ones hook the language model's embeddings alone)."""

NEWLINES = frozenset({"llava_next", "llava_next_video", "llava_onevision"})
"""Model types that put a learnt embedding at the end of every row of an image's tiles (``image_newline``)."""

SELECTED_STATES = (5, 23)
"""The first transformers version that was read to keep of the encoder's states those alone that the model asks for
(``select_hidden_states``, huggingface/transformers#48081 of August 2026); earlier ones list all layers'."""


def with_tower(spec: Spec, step: Step) -> Step:
    """A step with the encoder's layers and projector in front of the language model's."""
    waiting = _embeddings_gradient(spec, step.recipe)
    encoder = tuple([replace(part, waiting=part.waiting + waiting) for part in _parts(spec, step.kept_share)])
    parts = (*encoder, *_handed_over(spec, step.recipe))
    wide, wide_saved = into_the_connector(spec)
    held = _results(spec, step.recipe, encoder)
    layers = len(encoder) > 1 + inner_merges(spec.facts)
    of_graph = _tables(spec, recipe_of(spec), graph=layers) + image_leaf(spec, step.recipe)
    return replace(
        step,
        stretches=(*parts, *_adding(spec, step)),
        before=len(parts),
        copied=inner_merges(spec.facts),
        embedded=_embedded(spec),
        named=step.named + wide + held.named,
        named_saved=step.named_saved + (wide if wide_saved else 0) + held.saved,
        listed=held.bare - held.named,
        answered=held.answered,
        last_norm=_last_norm(spec, step.recipe),
        inputs=step.inputs + pixel_bytes(spec),
        let_go=(*step.let_go, *_of_text(spec, step)),
        front=step.front + of_graph,
        opening=step.opening + of_graph,
    )


def _embeddings_gradient(spec: Spec, recipe: Recipe) -> int:
    """Bytes of the gradient of the words' embeddings, which waits while the encoder runs backward.

    Words are looked up before the images are encoded; where the embedding is frozen, it is that of a leaf.
    """
    if style(spec.facts).joins:
        return 0
    trained = any(part.role == "embedding" and part.where != "vision" for part in inventory(spec).trainables)
    size = sequences(spec) * spec.seq_len * spec.facts.hidden * stream_bytes(spec.facts, recipe)
    return rounded(size) if trained or opens_inputs(spec) else 0


def _of_text(spec: Spec, step: Step) -> tuple[tuple[int, int], ...]:
    """What the text's layers alone hold, which is gone when the encoder runs backward: the first of them, and bytes.

    Reentrant checkpointing holds it as long as the graph lives.
    """
    checkpoints = spec.gradient_checkpointing is not False
    if style(spec.facts).joins or (checkpoints and spec.use_reentrant):
        return ()
    facts, batch, seq = language(spec.facts), sequences(spec), -(-spec.seq_len // spec.sequence_parallel)
    stream = stream_bytes(facts, step.recipe)
    kept, passing = given(local(facts, spec.tensor_parallel), step.recipe, batch, seq, stream, checkpoints=checkpoints)
    size = kept + (passing if checkpoints else 0) - sum([size for _, size in step.let_go])
    return ((0, size),) if size > 0 else ()


def trains_tower(spec: Spec) -> bool:
    """Whether any part of the encoder or its projector is trained."""
    return trains_encoder(spec) or trains_connector(spec)


def _handed_over(spec: Spec, recipe: Recipe) -> tuple[Stretch, ...]:
    """What stands beside the text as a part of its own, between the encoder and the text; empty where nothing does."""
    if recipe.beside is None:
        return ()
    batch, seq = sequences(spec), -(-spec.seq_len // spec.sequence_parallel)
    facts = local(language(spec.facts), spec.tensor_parallel)
    size = aside(facts, recipe, batch, seq, spec.gradient_checkpointing is not False).lasting
    gradient = gradient_beside(recipe, batch, facts.hidden)
    return (Stretch(1, Profile(0, Live(size), Live(temporaries=gradient), 0, gradient), False),)


def into_the_connector(spec: Spec) -> tuple[int, bool]:
    """Bytes of what goes into the projector, where a name holds it while the text's layers run; whether it is saved."""
    if not style(spec.facts).joins:
        return 0, False
    recipe, facts = recipe_of(spec), spec.facts
    stream = stream_of(recipe, style(facts))
    images = (1 if spec.images is None else spec.images) * sequences(spec)
    wide = rounded(images * mllama.seen(tower_of(facts)) * mllama.projected(facts) * stream)
    frozen = recipe.frozen or not any("multi_modal_projector" in name for name in _trained(spec))
    return wide, keeps_input(replace(recipe, frozen=frozen), stream, "multi_modal_projector")


def _inner_features(spec: Spec) -> int:
    """Bytes of what a merger inside the encoder gives, and of its gradient."""
    seen, recipe = pictures(spec), recipe_of(spec)
    rows = seen.number * (seen.patches // tower_of(spec.facts).merge)
    return rounded(rows * spec.facts.hidden * (2 if recipe.autocast else recipe.weights))


def _adding(spec: Spec, step: Step) -> tuple[Stretch, ...]:
    """The text's layers; the first add inner features to their results, whose gradients wait from there on."""
    count = inner_merges(spec.facts)
    if not count or not (trains_tower(spec) or _hooked(spec)):
        return step.stretches
    each, start, found = _inner_features(spec), 0, list[Stretch]()
    for stretch in step.stretches:
        end = start + stretch.length
        for index in range(start, min(end, count)):
            found.append(replace(stretch, length=1, waiting=stretch.waiting + (count - index) * each))
        if end > count:
            found.append(replace(stretch, length=end - max(start, count)))
        start = end
    return tuple(found)


class _Held(NamedTuple):
    """Bytes of what the model's forward has names for of the images while the text's layers run: all of it, what
    layers save of it, and what of it is there without a graph; and what of it the model gives back."""

    named: int
    saved: int
    bare: int
    answered: int


def _results(spec: Spec, recipe: Recipe, encoder: tuple[Stretch, ...]) -> _Held:
    """What is named of the images, and given back of them."""
    facts, seen, tower = spec.facts, pictures(spec), tower_of(spec.facts)
    held, own, unused = results(facts), recipe_of(spec), style(facts).unused
    wide = seen.number * seen.positions * tower.hidden
    state = rounded(wide * stream_of(own, style(facts)))
    normed = held.normed * rounded(wide * (4 if own.autocast else own.weights))
    rows = (seen.number * (tower.tokens or seen.patches // tower.merge) + _newlines(spec, seen)) * facts.hidden
    made, taken = 2 if own.autocast and not held.typed else 4, stream_bytes(language(facts), recipe)
    made = made if own.autocast else own.weights
    one, embeds = rounded(rows * made), rounded(rows * taken) if held.features else 0
    apart = embeds if held.joined or taken != made else 0
    merged = 2 * inner_merges(facts)
    states = held.states * state
    if held.every:
        picked = handed_on(facts) + 1 + (unused > 0)
        states = (picked if transformers_version(spec) >= SELECTED_STATES else tower.layers + 1) * state
    bare = states + normed + (held.inner + held.features + merged) * one + apart
    whole = spec.method == "full" and trains_connector(spec)  # PEFT saves a copy of its own
    last = held.states or (held.every and not unused)
    saved = state if last and encoder and encoder[-1].layer.keeps_input else 0
    saved += normed if held.kept and encoder else 0
    saved += (held.inner * one + (normed if held.taken and not own.autocast else 0)) if whole else 0
    answered = (embeds if held.answered else 0) if not held.whole else bare - apart
    graph = _listed(encoder, unused, state) if held.every and unused else 0
    named = bare - states + graph if graph else bare
    if held.every and held.normed and len(encoder) > 1:  # the norm's own graph, which nobody else has
        named += 2 * rounded(seen.number * seen.positions * 4) + (normed if normed != state else 0)
    return _Held(named, saved, bare, answered)


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


def _last_norm(spec: Spec, recipe: Recipe) -> int:
    """Bytes at the worst point of the forward of the norm behind the text's last layer."""
    facts = local(language(spec.facts), spec.tensor_parallel)
    seq = -(-spec.seq_len // spec.sequence_parallel)
    return norm_forward(facts, recipe, sequences(spec), seq, stream=stream_bytes(facts, recipe))


def trains_encoder(spec: Spec) -> bool:
    """Whether anything of the encoder itself is trained.

    Adapters in an encoder that is checkpointed reentrantly are not, but behind patches that are made to need a
    gradient, or have an adapter: what goes into its first layer needs none, and so does what comes out then.
    """
    how = style(spec.facts)
    if spec.method == "lora" and not _hooked(spec):
        reentrant = _checkpoints(spec, how) and spec.use_reentrant and not _begins(_trained(spec))
        if how.checkpoints_itself or reentrant:
            return False
    return any(not any(part in name for part in PROJECTORS) for name in _trained(spec))


def _checkpoints(spec: Spec, how: Style) -> bool:
    """Whether the encoder's layers follow the model's checkpointing."""
    follows = how.checkpointed_before is None or transformers_version(spec) < how.checkpointed_before
    return spec.gradient_checkpointing is not False and follows


def _begins(trained: list[str]) -> bool:
    """Whether the convolution over patches has an adapter."""
    return any(name.endswith(".lora_A") and any(part in name for part in PATCHES) for name in trained)


def trains_connector(spec: Spec) -> bool:
    """Whether anything behind the encoder is trained."""
    return any(part in name for name in _trained(spec) for part in PROJECTORS)


def _trained(spec: Spec) -> list[str]:
    """The names of the trained weights between an image's pixels and words."""
    trained = inventory(spec).trainables
    return [
        weight.name for weight in trained if weight.where == "vision" and not any(name in weight.name for name in APART)
    ]


def _embedded(spec: Spec) -> int:
    """Bytes of the embedding's gradient, where the model encodes its images before it looks up the words."""
    if not style(spec.facts).joins:
        return 0
    found = [weight for weight in inventory(spec).trainables if weight.role == "embedding" and weight.where != "vision"]
    return sum(weight.bytes for weight in found)


def in_sequence(spec: Spec) -> bool:
    """Whether features that need a gradient are put in between the text's embeddings."""
    return trains_tower(spec) and not style(spec.facts).joins


def beside_text(spec: Spec) -> Beside | None:
    """What layers of the language model attend to in the images, where they stand beside the text."""
    if not style(spec.facts).joins:
        return None
    recipe, images = recipe_of(spec), 1 if spec.images is None else spec.images
    count = images * mllama.seen(tower_of(spec.facts))
    return Beside(count, 2 if recipe.autocast else recipe.weights, trains_tower(spec) or _hooked(spec), recipe.weights)


def _hooked(spec: Spec) -> bool:
    """Whether the images' embeddings are made to need a gradient over a frozen encoder."""
    if transformers_version(spec) < EVERY_EMBEDDING or not style(spec.facts).hooked:
        return False
    return opens_inputs(spec) or (spec.method == "full" and spec.gradient_checkpointing is not False)


def image_leaf(spec: Spec, recipe: Recipe) -> int:
    """Bytes of the text embeddings' output that the same makes a leaf: the features go into a copy of it."""
    if not opens_inputs(spec) or style(spec.facts).joins:
        return 0
    return rounded(sequences(spec) * spec.seq_len * spec.facts.hidden * stream_bytes(spec.facts, recipe))


def recipe_of(spec: Spec) -> Recipe:
    """How the encoder is run: by the attention kernel that was asked for, also where the language model has it not."""
    eager = spec.facts.model_type in WITHOUT_SDPA and spec.attention == "sdpa"
    return replace(of(spec), attention="eager" if eager else spec.attention)


def stream_of(recipe: Recipe, how: Style) -> int:
    """Bytes of an element of the encoder's stream.

    Autocast runs the convolution in half precision, and a LayerNorm in front of the layers in fp32. Where neither norm
    nor fp32 positions follow (Qwen casts its own), the stream stays half.
    """
    if not recipe.autocast:
        return recipe.weights
    if how.first_norm and not how.rms:
        return 4
    return 2 if how.apart and not how.first_norm else recipe.weights


def pixel_bytes(spec: Spec) -> int:
    """Bytes of the batch's pixels, which stay through the step."""
    seen, tower = pictures(spec), tower_of(spec.facts)
    return rounded(seen.number * seen.patches * CHANNELS * tower.patch**2 * style(spec.facts).frames * PIXEL)


def _tables(spec: Spec, recipe: Recipe, *, graph: bool) -> int:
    """Bytes of what the encoder makes once for all of its layers and its graph keeps: cos and sin, and a mask that
    keeps images apart, as far as SDPA's kernel takes it as it is.

    ``graph``: whether the encoder leaves one, without which nobody has them any longer. ``within``: while it runs. A
    mask stays where layers are run again with it, and where SDPA saves it, not a copy or eager scores.
    """
    how = style(spec.facts)
    if not graph:
        return 0
    if how.padded and spec.gradient_checkpointing is False:
        return turns(spec, recipe)
    checkpoints = spec.gradient_checkpointing is not False
    taken = mask_item(recipe, how) == (2 if recipe.autocast else recipe.weights)
    kept = checkpoints or (recipe.attention == "sdpa" and taken)
    return turns(spec, recipe) + (image_mask(spec, recipe) if kept else 0)


def image_mask(spec: Spec, recipe: Recipe) -> int:
    """Bytes of the mask that the encoder makes once for all of its layers."""
    how, seen = style(spec.facts), pictures(spec)
    if recipe.attention == "flash_attention_2" and not how.joins:
        return 0
    number, positions = sequences_of(spec, recipe, how)
    if how.padded:
        return rounded(seen.number * seen.positions**2 * (recipe.weights if recipe.attention == "eager" else 1))
    return rounded(number * positions**2 * mask_item(recipe, how))


def turns(spec: Spec, recipe: Recipe) -> int:
    """Bytes of the encoder's cos and sin."""
    how, seen, tower = style(spec.facts), pictures(spec), tower_of(spec.facts)
    size = seen.number * seen.positions * (tower.hidden // tower.heads) * (4 if how.apart else recipe.weights)
    return 2 * rounded(size) if how.rotary else 0


def sequences_of(spec: Spec, recipe: Recipe, how: Style) -> tuple[int, int]:
    """Sequences of the encoder and positions in each: all pictures are one where a mask keeps them apart."""
    seen = pictures(spec)
    if how.joins:
        tower = tower_of(spec.facts)
        return seen.number // tower.tiles, mllama.positions(tower)
    if how.masked and recipe.attention != "flash_attention_2":
        return 1, seen.number * seen.positions
    return seen.number, seen.positions


def _parts(spec: Spec, kept: float) -> tuple[Stretch, ...]:
    """The encoder's parts that leave a graph, in their order.

    A frozen encoder leaves none, but where its patches are made to need a gradient (:func:`_hooked`).
    """
    facts, recipe, how = spec.facts, recipe_of(spec), style(spec.facts)
    batch, seq = sequences_of(spec, recipe, how)
    checkpoints = _checkpoints(spec, how)
    trained, adapted = _trained(spec), trains_encoder(spec)
    copied = tuple(name.split(".")[-2] for name in trained if ".modules_to_save" in name)
    recipe = replace(recipe, trained_modules=(*recipe.trained_modules, *copied))
    projects = trains_connector(spec)
    encoder = recipe if adapted else replace(recipe, frozen=True)
    connector = recipe if projects else replace(recipe, frozen=True)
    begins = _begins(trained)
    flows = _hooked(spec) or not encoder.frozen or begins
    stream = stream_of(recipe, how)
    parts: list[Stretch] = []
    made: dict[tuple[object, ...], Profile] = {}

    def add(
        name: str, flowing: bool, images: int, positions: int, checkpointed: bool = False, waiting: int = 0
    ) -> None:
        key = name, flowing, images, positions, checkpointed
        if key not in made:
            part = connector if name in ("merge", "inner_merge") else encoder
            shape = form(facts, part, name, stream=stream, flows=flowing, watched=checkpointed, batched=images > 1)
            reentrant = spec.use_reentrant or how.checkpoints_itself
            made[key] = counted(shape, images, positions, checkpointed=checkpointed, reentrant=reentrant, kept=kept)
        parts.append(Stretch(1, made[key], checkpointed, waiting))

    if flows or adapted:
        add("adapted_stem" if begins else "stem", flows, batch, seq)
        state = rounded(batch * seq * tower_of(facts).hidden * stream)
        parts_of = order(facts)
        for index, (name, size) in enumerate(parts_of):
            images, positions = (batch, seq) if size is None else (max(1, batch * seq // size), size)
            again = (checkpoints or how.checkpoints_itself) and name in CHECKPOINTED
            merged = sum(other == "inner_merge" for other, _ in parts_of[:index]) * _inner_features(spec)
            add(name, flows or index > 0, images, positions, again, state * handed_on(facts, index) + merged)
        add("merge", True, batch, seq, waiting=inner_merges(facts) * _inner_features(spec))
    elif projects:  # mergers inside the encoder are no layers, and train whatever these do
        for index in range(inner_merges(facts)):
            add("inner_merge", False, batch, seq, waiting=index * _inner_features(spec))
        add("merge", False, batch, seq, waiting=inner_merges(facts) * _inner_features(spec))
    return tuple(parts)


CHECKPOINTED = frozenset({"block", "gated_block"})
"""The parts that are layers of the encoder."""

PATCHES = ("patch_embed", "patch_conv")
"""What the name of the convolution over patches has in it."""

PROJECTORS = (
    "aligner",
    "head_linear",
    "connector",
    "image_newline",
    "img_projection",
    "merger",
    "mlp1",
    "mm_projector",
    "multi_modal_projector",
    "projector",
    "resampler",
    "vision_projection",
    "visual_embeddings_table",
)
"""What the names of the parts behind the encoder have in them."""
