"""The step of one model of a micro-batch, counted: its layers, its head, and what lies around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import NamedTuple

from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import replace
from lintfit.memory.activations.families import known, traits
from lintfit.memory.activations.form import NOTHING, Live
from lintfit.memory.activations.frames import frame
from lintfit.memory.activations.kinds import Kind, kinds, running, stream_width, stretches
from lintfit.memory.activations.profile import Profile, profile, without_graph
from lintfit.memory.activations.recipe import Beside, Recipe, left_alone, of, with_beside
from lintfit.memory.activations.tape import INDEX, rounded
from lintfit.memory.engines.fsdp import flattened
from lintfit.memory.engines.gradients import sums_out_of_place
from lintfit.memory.engines.states import States
from lintfit.memory.loss.head import Head
from lintfit.memory.loss.logits import head
from lintfit.memory.loss.preference import Path, scored, sequences
from lintfit.memory.micro_batch.aside import aside, gradient_beside
from lintfit.memory.micro_batch.autocast import cached_copies, head_copy
from lintfit.memory.micro_batch.embedding import (
    dropout_mask,
    embedding_norm,
    embedding_width,
    input_leaf,
    opens_inputs,
    projected_embeddings,
    scratch,
    summands,
)
from lintfit.memory.micro_batch.frozen_recipes import among_layers, at_end, at_lookup
from lintfit.memory.micro_batch.kv_cache import checkpointed_states, evaluated_states, forward_states, last_states
from lintfit.memory.micro_batch.language import language
from lintfit.memory.micro_batch.modal_words import modal_words, named_streams
from lintfit.memory.micro_batch.own_inputs import own_inputs
from lintfit.memory.micro_batch.seen_again import seen_again, unfinished
from lintfit.memory.micro_batch.step import Step, Stretch, pinned
from lintfit.memory.micro_batch.tables import given, let_go, sinusoids, triangles, untaken_mask
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.frozen_parts import FrozenParts, frozen_parts
from lintfit.memory.tensors.parameters import Inventory
from lintfit.memory.tensors.tensor_parallel import local


def record_model(
    spec: Spec, states: States, held: Inventory, path: Path, *, seen: bool = False, beside: Beside | None = None
) -> Step:
    """Count the layers, the head and the embedding of one model of a micro-batch, with its way through the loss.

    ``held``: all that is trained together. ``seen``: whether features of images that need a gradient are put in
    between the embeddings. ``beside``: what layers attend to beside the text.
    """
    recipe = of(spec) if beside is None else with_beside(of(spec), beside)
    facts = local(language(spec.facts), spec.tensor_parallel)
    shape = _Shape(sequences(spec), -(-spec.seq_len // spec.sequence_parallel), stream_bytes(facts, recipe))
    tokens = shape.batch * shape.seq
    kept = _kept(spec, states, held)
    checkpoints = spec.gradient_checkpointing is not False
    words = [weight for weight in held.trainables if weight.role == "embedding" and weight.where != "vision"]
    trains_embedding = spec.pipeline_stage != "last" and bool(words)
    left = frozen_parts(spec)
    lookup = at_lookup(spec, recipe)
    flows = seen or trains_embedding or (left.embedding and opens_inputs(spec))
    layers = _stretches(spec, facts, recipe, shape, kept, left, flows=flows)
    by_it = aside(facts, among_layers(spec, recipe), shape.batch, shape.seq, checkpoints)
    reentrant = spec.use_reentrant
    embedded = embedding_bytes(recipe)
    own = own_inputs(facts, lookup, *shape, embedded, checkpoints=checkpoints, reentrant=reentrant)
    again = seen_again(facts, recipe, *shape, checkpoints=checkpoints, reentrant=reentrant)
    layers = _waiting(_waiting(layers, own.waiting), again.waiting)
    if not (checkpoints and reentrant):
        layers = _waiting(layers, unfinished(facts, recipe, kept))
    flows = not left.of_text or _gives_gradient(layers)
    ending = at_end(spec, recipe)
    tail = NO_HEAD if spec.pipeline_stage == "first" else _head(spec, facts, ending, shape, path, kept, flows=flows)
    # The first and the last stage of a pipeline each hold an embedding of their own.
    shares = trains_embedding and facts.tied and spec.method == "full" and spec.pipeline_stage is None
    shares = shares and path != "score"
    exchanged = _exchanged(spec, tokens * facts.hidden * shape.stream)
    opening = dropout_mask(facts, lookup, tokens, checkpoints) + input_leaf(spec, checkpoints, tokens, embedded)
    normed, summands_kept = embedding_norm(spec, lookup, tokens, embedded, checkpoints)
    opening += normed + projected_embeddings(spec, lookup, shape.batch, shape.seq, embedded, checkpoints)
    modal = modal_words(spec, lookup, shape.batch, shape.seq, embedded, checkpoints=checkpoints)
    opening += modal.kept
    opening += again.kept
    graphed = opening + own.graphed
    samples = frame(spec.facts).tables_each
    lasting, passing = given(facts, recipe, *shape, checkpoints=checkpoints, samples=samples)
    untaken = untaken_mask(facts, recipe, *shape)
    earlier = 0 if checkpoints else forward_states(spec, facts, recipe, *shape) + by_it.cache
    return Step(
        stretches=tuple(layers),
        head=tail,
        recipe=recipe,
        copies=0
        if spec.engine == "fsdp"
        else cached_copies(recipe, held, experts=traits(facts).casts_experts, sees=bool(spec.images)),
        tiled=head_copy(held) if recipe.autocast and path == "chunked" and spec.engine != "fsdp" else 0,
        inputs=rounded(tokens * INDEX),
        front=lasting + exchanged + own.kept + triangles(facts, recipe.weights) + sinusoids(spec.facts) + opening,
        opening=graphed,
        cached=checkpointed_states(spec, tokens, shape.stream) if checkpoints else 0,
        masks=passing + untaken,
        untaken=untaken,
        let_go=let_go(facts, recipe, *shape) if checkpoints and not spec.use_reentrant else (),
        kept_share=kept,
        retained=checkpoints and _retains_inputs(spec),
        offloaded=spec.activation_offload,
        in_flight=_in_flight(spec),
        embedding_scratch=scratch(tokens, embedding_width(facts), shape.stream) if trains_embedding else 0,
        waiting=tail.weights if shares else 0,
        last_graph=tail.pinned + pinned(layers) if recipe.litgpt else 0,
        out_of_place=shares and sums_out_of_place(spec),
        exchanged=exchanged,
        notes=_notes(spec, facts),
        named=by_it.named + modal.named + named_streams(facts, shape.batch, shape.seq, embedded) + again.named,
        named_saved=by_it.lasting + modal.named_kept + again.kept,
        summands=summands(facts, shape.batch, shape.seq, embedded),
        summands_kept=summands_kept,
        evaluated=evaluated_states(spec, facts, tokens, shape.stream) + by_it.cache,
        evaluated_last=last_states(spec, facts, tokens, shape.stream, by_it),
        earlier=Live(earlier) if earlier else NOTHING,
    )


class _Shape(NamedTuple):
    """A micro-batch on one rank: sequences, tokens of each, and bytes of an element of the residual stream."""

    batch: int
    seq: int
    stream: int


def _stretches(
    spec: Spec, facts: ModelFacts, recipe: Recipe, shape: _Shape, kept: float, left: FrozenParts, *, flows: bool
) -> list[Stretch]:
    """The layers of this rank in their order, equal ones together; each kind is counted once.

    ``flows``: whether the first layer's input needs a gradient, where it could do without: a frozen model's.
    """
    checkpoints = spec.gradient_checkpointing is not False

    def one(index: int, stream: int, flows: bool, recipe: Recipe = recipe, checkpoints: bool = checkpoints) -> Profile:
        return profile(
            facts,
            recipe,
            shape.batch,
            shape.seq,
            index,
            stream=stream,
            flows=flows,
            checkpointed=checkpoints,
            selective=spec.gradient_checkpointing == "selective",
            reentrant=spec.use_reentrant,
            kept=kept,
        )

    if left.of_text:
        reentrant = checkpoints and spec.use_reentrant
        hooked = _hooks_frozen(spec)
        return _partly_frozen(facts, recipe, shape, left.layers, one, checkpoints, flows, reentrant, hooked)
    counted: dict[Kind, Profile] = {}
    layers: list[Stretch] = []
    count = -(-facts.layers // spec.pipeline_parallel)
    for kind, start, length in stretches(facts):
        if start >= count:
            break
        if kind.crosses and recipe.beside is None:
            continue
        if kind not in counted:
            counted[kind] = one(start, shape.stream, flows=True)
        if kind.crosses == "last cross":
            waiting = gradient_beside(recipe, shape.batch, facts.hidden)
            layers = [replace(stretch, waiting=waiting) for stretch in layers]
        layers.append(Stretch(min(length, count - start), counted[kind], checkpoints))
    no_gradient = recipe.frozen and not flows and not checkpoints and (recipe.litgpt or not recipe.quantized)
    taken = _taken(facts, recipe, shape)
    if stream_width(facts) != facts.hidden:  # streams made of the embeddings, by products that adapters may sit on
        no_gradient = no_gradient and not (recipe.lora is not None and recipe.lora.on("altup_projections"))
    if not no_gradient and taken == shape.stream:
        return layers
    # Layers behind frozen embeddings have no gradient up to the first with an adapter.
    first: list[Stretch] = []
    for index in running(facts, beside=recipe.beside is not None):
        if index >= count:
            break
        profiled = one(index, shape.stream if first else taken, flows=not no_gradient)
        first.append(Stretch(1, profiled, checkpoints, layers[0].waiting))
        if not no_gradient or profiled.form is None or profiled.form.output.grad:
            break
    return [*first, *_without(layers, len(first))]


def _taken(facts: ModelFacts, recipe: Recipe, shape: _Shape) -> int:
    """Bytes of an element of what the first layer takes: the embeddings' output, if nothing is done to it."""
    changed = stream_width(facts) != facts.hidden or frame(facts).encoder
    return shape.stream if changed else embedding_bytes(recipe)


def _partly_frozen(
    facts: ModelFacts, recipe: Recipe, shape: _Shape, still: frozenset[int], one: Callable[..., Profile],
    checkpoints: bool, flows: bool, reentrant: bool, hooked: bool,
) -> list[Stretch]:  # fmt: skip
    """The layers of a model of which some are frozen: without a graph up to the first that trains.

    Reentrant checkpointing leaves none either where what goes into it needs no gradient, whatever is in it
    (``CheckpointFunction``). ``hooked``: see :func:`_hooks_frozen`.
    """
    counted: dict[tuple[object, ...], Stretch] = {}
    found: list[Stretch] = []
    waiting = 0
    for index in running(facts, beside=recipe.beside is not None):
        kind, rests = kinds(facts)[index], index in still
        if kind.crosses == "last cross":
            waiting = gradient_beside(recipe, shape.batch, facts.hidden)
            found = [replace(each, waiting=waiting) for each in found]
        joined = bool(kind.crosses) and recipe.beside is not None and recipe.beside.flows
        bare = not flows and not joined and (rests or reentrant)
        stream = shape.stream if found else _taken(facts, recipe, shape)
        key = kind, rests, bare, flows, stream
        if key not in counted:
            how = left_alone(recipe) if rests or bare else recipe
            counted[key] = Stretch(
                1, one(index, stream, flows, how, checkpoints and not bare), checkpoints and not bare
            )
        found.append(counted[key])
        flows = flows or not bare
    return [replace(each, length=len(list(group))) for each, group in groupby(found)]


def _gives_gradient(layers: list[Stretch]) -> bool:
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


def _waiting(layers: list[Stretch], sizes: tuple[int, ...]) -> list[Stretch]:
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


def _head(
    spec: Spec, facts: ModelFacts, recipe: Recipe, shape: _Shape, path: Path, kept: float, *, flows: bool
) -> Head:
    """The way from the last layer to the loss, of all tokens or of those that are scored."""
    some = scored(spec, shape.seq)
    part = some if some < shape.seq else None
    return head(facts, recipe, shape.batch, shape.seq, path, stream=shape.stream, kept=kept, scored=part, flows=flows)


def _notes(spec: Spec, facts: ModelFacts) -> tuple[str, ...]:
    """What is left out, or another model's."""
    notes = () if known(facts) else (f"activations of {facts.model_type} follow the nearest architecture's layer",)
    if spec.facts.vision is not None and spec.images is None:
        notes = (*notes, "activations of the vision tower (the spec does not say how many images a sample has)")
    return notes


NO_HEAD = Head(NOTHING, NOTHING, NOTHING, NOTHING, 0, NOTHING)
"""The head of a stage that has none."""


def _exchanged(spec: Spec, size: int) -> int:
    """Bytes of what a stage receives, one buffer of ``size`` bytes for each micro-batch.

    torch makes the buffers of all micro-batches beforehand (``pipelining/stage.py:_prepare_forward_infra``), DeepSpeed
    one, and at least two, for every micro-batch in flight (``pipe/schedule.py:TrainSchedule.num_pipe_buffers``).
    """
    if spec.pipeline_stage is None or spec.pipeline_parallel == 1:
        return 0
    count = max(2, _in_flight(spec)) if spec.engine == "deepspeed" else spec.gradient_accumulation_steps
    return count * rounded(size)


def _in_flight(spec: Spec) -> int:
    """Micro-batches whose graphs a stage holds at once; the last one runs each backward straight away."""
    if spec.pipeline_stage == "last":
        return 1
    return min(spec.pipeline_parallel, spec.gradient_accumulation_steps)


def without_gradients(spec: Spec, recipe: Recipe) -> Live:
    """What is alive at the worst point of any layer's forward pass without gradients.

    ``casts``: less the copies of weights that autocast makes later, in this layer and those behind it.
    """
    facts = local(language(spec.facts), spec.tensor_parallel)
    batch, seq = sequences(spec), -(-spec.seq_len // spec.sequence_parallel)
    stream = stream_bytes(facts, recipe)
    runs = [part for part in stretches(facts) if recipe.beside is not None or not part[0].crosses]
    forms = {kind: without_graph(facts, recipe, batch, seq, start, stream=stream) for kind, start, _ in reversed(runs)}
    if not recipe.autocast:
        return max([form.peak(batch, seq) for form in forms.values()], key=_total)
    later, found = 0, list[Live]()
    sizes: dict[Kind, int] = {}
    for kind, _, length in reversed(runs):
        form = forms.pop(kind, None)
        if form is not None:  # the last of its kind, beside which most copies are made
            alive, each = form.peak(batch, seq), form.cached(batch, seq)
            found.append(Live(alive.activations, casts=alive.casts - later))
            sizes[kind] = each
        later += length * sizes[kind]
    return max(found, key=_total)


def _total(live: Live) -> int:
    return live.total


def stream_bytes(facts: ModelFacts, recipe: Recipe) -> int:
    """Bytes of an element of the residual stream.

    A quantised linear layer gives back the dtype that it was given: where the norms are fp32, or run in fp32 because
    autocast has LayerNorm do so, what the MLP adds to the stream is fp32, and the stream with it (bitsandbytes
    ``Linear4bit.forward``, ``out.to(inp_dtype)``). So do experts, whose sum is cast to what they were given, and a norm
    at the end of a layer (OPT-350m, BERT).
    """
    behind_it = facts.model_type == "opt" and not facts.config.get("do_layer_norm_before", True)
    ends = behind_it or frame(facts).encoder
    torchs = facts.norm == "layernorm" and not frame(facts).casts_norms
    behind = recipe.autocast and torchs and (recipe.quantized or ends or facts.moe is not None)
    apart = recipe.autocast and facts.model_type == "gemma3n_text"  # the sizes that its streams share are fp32
    kept = frame(facts).fp32_stream and facts.config.get("residual_in_fp32", True)
    upcast = recipe.upcast_norms or behind or apart or kept
    return 4 if upcast else recipe.weights


def embedding_bytes(recipe: Recipe) -> int:
    """Bytes of an element of the embeddings' output, which the first layer takes."""
    return 4 if recipe.upcast_head else recipe.weights


def _kept(spec: Spec, states: States, held: Inventory) -> float:
    """The share of a parameter gradient that stays with the rank once it is made."""
    if spec.engine == "fsdp":
        held = flattened(spec, held)
    grown = states.backward_end.get("gradients", 0) - states.first_gradient.get("gradients", 0)
    return min(1.0, max(0.0, grown / held.trainable_bytes)) if held.trainable_bytes else 0.0


def _retains_inputs(spec: Spec) -> bool:
    """FSDP 1 over frozen layers with reentrant checkpointing: no layer's input dies before the backward ends.

    ``_register_post_backward_reshard_only_hook`` keeps a hook on the detached input of every frozen unit, and the
    hook its gradient accumulator, until ``_post_backward_final_callback``: input and gradient stay.
    """
    return spec.method == "lora" and _hooks_frozen(spec)


def _hooks_frozen(spec: Spec) -> bool:
    """Whether a frozen layer holds its checkpointed input, as :func:`_retains_inputs` has it."""
    first = spec.fsdp is None or spec.fsdp.version == 1
    return spec.engine == "fsdp" and first and spec.use_reentrant
