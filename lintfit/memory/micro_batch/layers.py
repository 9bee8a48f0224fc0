"""The layers of one model's micro-batch, counted: which leave a graph, and what waits beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import replace
from lintfit.memory.activations.frames import projection
from lintfit.memory.activations.kinds import Kind, kinds, running, stream_width, stretches
from lintfit.memory.activations.profile import Profile, profile
from lintfit.memory.activations.recipe import Recipe, left_alone
from lintfit.memory.micro_batch.aside import gradient_beside
from lintfit.memory.micro_batch.frozen_recipes import in_layers
from lintfit.memory.micro_batch.model import Model
from lintfit.memory.micro_batch.step import Stretch
from lintfit.memory.micro_batch.stream import Shape, embedding_bytes
from lintfit.memory.spec import Spec


def layers_of(spec: Spec, model: Model, shape: Shape, kept: float, *, flows: bool) -> list[Stretch]:
    """The layers of this rank in their order, equal ones together; each kind is counted once.

    ``flows``: whether the first layer's input needs a gradient, where it could do without: a frozen model's.
    """
    one = _profiles(spec, model, shape, kept)
    if model.left.of_text:
        return _partly_frozen(model, shape, one, flows)
    count = -(-model.facts.layers // spec.pipeline_parallel)
    layers = _by_kind(model, shape, one, count)
    flows, taken = flows or _opened(model), _taken(model)
    if flows and taken == shape.stream:
        return layers
    # Layers behind frozen embeddings have no gradient up to the first with an adapter.
    first: list[Stretch] = []
    for index in running(model.facts, beside=model.recipe.beside is not None):
        if index >= count:
            break
        profiled = one(index, shape.stream if first else taken, flows)
        first.append(Stretch(1, profiled, model.checkpoints, layers[0].waiting))
        if flows or profiled.form is None or profiled.form.output.grad:
            break
    return [*first, *_without(layers, len(first))]


_Profiles = Callable[..., Profile]
"""Gives a layer's profile by its number, the bytes of an element of what it takes, and whether that needs a gradient;
and by how it is run and whether it is checkpointed, where that is not the model's way."""


def _profiles(spec: Spec, model: Model, shape: Shape, kept: float) -> _Profiles:
    own = in_layers(spec, model.recipe)

    def one(
        index: int, stream: int, flows: bool, recipe: Recipe = own, checkpoints: bool = model.checkpoints
    ) -> Profile:
        return profile(
            model.facts,
            recipe,
            shape.batch,
            shape.seq,
            index,
            stream=stream,
            flows=flows,
            checkpointed=checkpoints,
            selective=spec.gradient_checkpointing == "selective",
            reentrant=model.reentrant,
            kept=kept,
        )

    return one


def _by_kind(model: Model, shape: Shape, one: _Profiles, count: int) -> list[Stretch]:
    """The first ``count`` layers, into all of which a gradient flows back."""
    counted: dict[Kind, Profile] = {}
    layers: list[Stretch] = []
    for kind, start, length in stretches(model.facts):
        if start >= count:
            break
        if kind.crosses and model.recipe.beside is None:
            continue
        layer = counted.get(kind)
        if layer is None:
            layer = counted[kind] = one(start, shape.stream, True)
        if kind.crosses == "last cross":
            waiting = gradient_beside(model.recipe, shape.batch, model.facts.hidden)
            layers = [replace(stretch, waiting=waiting) for stretch in layers]
        layers.append(Stretch(min(length, count - start), layer, model.checkpoints))
    return layers


def _opened(model: Model) -> bool:
    """Whether the first layer's input needs a gradient, whoever asks for that of the embeddings: over a base that is
    checkpointed or quantised, or behind an adapter."""
    recipe, lora = model.recipe, model.recipe.lora
    if not recipe.frozen or model.checkpoints or (recipe.quantized and not recipe.litgpt):
        return True
    between = _between(model.facts)
    return bool(between) and lora is not None and lora.on(between)


def _between(facts: ModelFacts) -> str:
    """The product between embeddings and first layer, on which an adapter may sit; empty where there is none."""
    if stream_width(facts) != facts.hidden:
        return "altup_projections"
    through = projection(facts)
    return through.module if through is not None else ""


def _taken(model: Model) -> int:
    """Bytes of an element of what the first layer takes: the embeddings' output, if nothing is done to it, or what a
    product made of it, if nothing is added to that."""
    facts, how, recipe = model.facts, model.how, model.recipe
    if projection(facts) is not None and not how.learned:
        return 2 if recipe.autocast else recipe.weights
    changed = model.own.streams is not None or (how.ends and how.normed > 0) or how.opens
    return model.stream if changed else embedding_bytes(recipe)


def _partly_frozen(model: Model, shape: Shape, one: _Profiles, flows: bool) -> list[Stretch]:
    """The layers of a model of which some are frozen: without a graph up to the first that trains.

    Reentrant checkpointing leaves none either where what goes into it needs no gradient, whatever is in it
    (``CheckpointFunction``).
    """
    facts, recipe, checkpoints = model.facts, model.recipe, model.checkpoints
    reentrant = checkpoints and model.reentrant
    counted: dict[tuple[object, ...], Stretch] = {}
    found: list[Stretch] = []
    for index in running(facts, beside=recipe.beside is not None):
        kind, rests = kinds(facts)[index], index in model.left.layers
        if kind.crosses == "last cross":
            waiting = gradient_beside(recipe, shape.batch, facts.hidden)
            found = [replace(each, waiting=waiting) for each in found]
        joined = bool(kind.crosses) and recipe.beside is not None and recipe.beside.flows
        bare = not flows and not joined and (rests or reentrant)
        stream = shape.stream if found else _taken(model)
        key = kind, rests, bare, flows, stream
        if key not in counted:
            how = left_alone(recipe) if rests or bare else recipe
            counted[key] = Stretch(
                1, one(index, stream, flows, how, checkpoints and not bare), checkpoints and not bare
            )
        found.append(counted[key])
        flows = flows or not bare
    return [replace(each, length=len(list(group))) for each, group in groupby(found)]


def gives_gradient(layers: list[Stretch]) -> bool:
    """Whether what the last layer gives needs a gradient; a checkpointed one's form is not at hand, and does."""
    form = layers[-1].layer.form if layers else None
    return form is None or form.output.grad


def _without(layers: list[Stretch], count: int) -> Iterator[Stretch]:
    """The layers behind the first ``count``."""
    for stretch in layers:
        taken = min(stretch.length, count)
        count -= taken
        if stretch.length > taken:
            yield replace(stretch, length=stretch.length - taken)


def waiting_beside(layers: list[Stretch], sizes: tuple[int, ...]) -> list[Stretch]:
    """The stretches with so many bytes more that wait beside each layer; parted where these change."""
    if not any(sizes):
        return layers
    found: list[Stretch] = []
    start = 0
    for stretch in layers:
        for size, group in groupby(sizes[start : start + stretch.length]):
            found.append(replace(stretch, length=len(list(group)), waiting=stretch.waiting + size))
        start += stretch.length
    return found


def hooks_frozen(spec: Spec) -> bool:
    """Whether a frozen layer holds its checkpointed input, and that input its gradient, to the end of the backward.

    FSDP 1 with reentrant checkpointing: ``_register_post_backward_reshard_only_hook`` keeps a hook on the detached
    input of every frozen unit, and the hook its gradient accumulator, until ``_post_backward_final_callback``.
    """
    first = spec.fsdp is None or spec.fsdp.version == 1
    return spec.engine == "fsdp" and first and spec.use_reentrant
