"""What an image encoder adds to a step: its layers run before the language model's, and their backward after it.

How many images a sample has only ``images`` says; without it the encoder counts in the high end of the range alone.
"""

from __future__ import annotations

from lintfit.catalog.language import language
from lintfit.frozen import replace
from lintfit.memory.activations.form import Live
from lintfit.memory.activations.profile import Profile
from lintfit.memory.activations.recipe import Beside, Recipe
from lintfit.memory.activations.tape import rounded
from lintfit.memory.activations.towers import (
    inner_merges,
    mllama,
    style,
    tower_of,
)
from lintfit.memory.loss.logits import norm_forward
from lintfit.memory.loss.preference import sequences
from lintfit.memory.micro_batch.aside import aside, gradient_beside
from lintfit.memory.micro_batch.embedding import LEAF, trains_embedding
from lintfit.memory.micro_batch.frozen_recipes import among_layers, at_end
from lintfit.memory.micro_batch.model import model_of
from lintfit.memory.micro_batch.opened import opens_inputs
from lintfit.memory.micro_batch.step import Step, Stretch
from lintfit.memory.micro_batch.stream import stream_bytes
from lintfit.memory.micro_batch.tables import given
from lintfit.memory.micro_batch.vision.held import held_of_images, into_the_connector
from lintfit.memory.micro_batch.vision.parts import inner_features, parts_of
from lintfit.memory.micro_batch.vision.shapes import kept_tables, pixel_bytes, recipe_of
from lintfit.memory.micro_batch.vision.trained import hooked, trains_tower
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.parameters import inventory
from lintfit.memory.tensors.tensor_parallel import local


def with_tower(spec: Spec, step: Step) -> Step:
    """A step with the encoder's layers and projector in front of the language model's."""
    waiting = _embeddings_gradient(spec, step.recipe)
    encoder = tuple([replace(part, waiting=part.waiting + waiting) for part in parts_of(spec, step.kept_share)])
    parts = (*encoder, *handed_over(spec, step.recipe))
    wide, wide_saved = into_the_connector(spec)
    held = held_of_images(spec, step.recipe, encoder)
    layers = len(encoder) > 1 + inner_merges(spec.facts)
    of_graph = kept_tables(spec, recipe_of(spec), graph=layers) + image_leaf(spec, step.recipe)
    return replace(
        step,
        stretches=(*parts, *_adding(spec, step)),
        before=len(parts),
        copied=inner_merges(spec.facts),
        embedded=_embedded(spec),
        named=step.named + wide + held.named,
        named_saved=step.named_saved + (wide if wide_saved else 0) + held.saved,
        listed=step.listed + held.bare - held.named,
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
    trained = trains_embedding(inventory(spec))
    size = sequences(spec) * spec.seq_len * spec.facts.hidden * stream_bytes(spec.facts, recipe)
    return rounded(size) if trained or opens_inputs(spec) else 0


def _of_text(spec: Spec, step: Step) -> tuple[tuple[int, int], ...]:
    """What the text's layers alone hold, which is gone when the encoder runs backward: the first of them, and bytes.

    Reentrant checkpointing holds it as long as the graph lives.
    """
    checkpoints = spec.gradient_checkpointing is not False
    if style(spec.facts).joins or (checkpoints and spec.use_reentrant):
        return ()
    facts, batch, seq = language(spec.facts), sequences(spec), spec.local_seq
    stream = stream_bytes(facts, step.recipe)
    kept, passing = given(local(facts, spec.tensor_parallel), step.recipe, batch, seq, stream, checkpoints=checkpoints)
    size = kept + (passing if checkpoints else 0) - sum([size for _, size in step.let_go])
    return ((0, size),) if size > 0 else ()


def handed_over(spec: Spec, recipe: Recipe) -> tuple[Stretch, ...]:
    """What stands beside the text as a part of its own, between the encoder and the text; empty where nothing does."""
    if recipe.beside is None:
        return ()
    batch, seq = sequences(spec), spec.local_seq
    facts = local(language(spec.facts), spec.tensor_parallel)
    size = aside(facts, among_layers(spec, recipe), batch, seq, spec.gradient_checkpointing is not False).lasting
    gradient = gradient_beside(recipe, batch, facts.hidden)
    return (Stretch(1, Profile(0, Live(size), Live(temporaries=gradient), 0, gradient), False),)


def _adding(spec: Spec, step: Step) -> tuple[Stretch, ...]:
    """The text's layers; the first add inner features to their results, whose gradients wait from there on."""
    count = inner_merges(spec.facts)
    if not count or not (trains_tower(spec) or hooked(spec)):
        return step.stretches
    each, start, found = inner_features(spec), 0, list[Stretch]()
    for stretch in step.stretches:
        end = start + stretch.length
        for index in range(start, min(end, count)):
            found.append(replace(stretch, length=1, waiting=stretch.waiting + (count - index) * each))
        if end > count:
            found.append(replace(stretch, length=end - max(start, count)))
        start = end
    return tuple(found)


def _last_norm(spec: Spec, recipe: Recipe) -> int:
    """Bytes at the worst point of the forward of the norm behind the text's last layer."""
    facts = local(language(spec.facts), spec.tensor_parallel)
    seq = spec.local_seq
    return norm_forward(facts, at_end(spec, recipe), sequences(spec), seq, stream=stream_bytes(facts, recipe))


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
    return Beside(count, 2 if recipe.autocast else recipe.weights, trains_tower(spec) or hooked(spec), recipe.weights)


def image_leaf(spec: Spec, recipe: Recipe) -> int:
    """Bytes of the text embeddings' output that the same makes a leaf: the features go into a copy of it.

    Where the model changes its embeddings besides, the leaf is counted already.
    """
    if not opens_inputs(spec) or style(spec.facts).joins or LEAF.has(model_of(spec)):
        return 0
    return rounded(sequences(spec) * spec.seq_len * spec.facts.hidden * stream_bytes(spec.facts, recipe))
