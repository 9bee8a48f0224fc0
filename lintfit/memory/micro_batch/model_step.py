"""The step of one model of a micro-batch, counted: its layers, its head, and what lies around them."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.families import known, traits
from lintfit.memory.activations.form import NOTHING, Live
from lintfit.memory.activations.frames import embedding_width, frame
from lintfit.memory.activations.recipe import Beside, Recipe, of, with_beside
from lintfit.memory.activations.tape import INDEX, rounded
from lintfit.memory.engines.fsdp import flattened
from lintfit.memory.engines.gradients import sums_out_of_place
from lintfit.memory.engines.states import States
from lintfit.memory.loss.head import Head
from lintfit.memory.loss.logits import head
from lintfit.memory.loss.preference import Path, scored, sequences
from lintfit.memory.micro_batch.aside import aside
from lintfit.memory.micro_batch.autocast import cached_copies, head_copy
from lintfit.memory.micro_batch.buffers import buffers, of_sound
from lintfit.memory.micro_batch.embedding import (
    dropout_mask,
    embedding_norm,
    input_leaf,
    mapped_embeddings,
    opens_inputs,
    projected_embeddings,
    scratch,
    summands,
)
from lintfit.memory.micro_batch.frozen_recipes import among_layers, at_end, at_lookup
from lintfit.memory.micro_batch.kv_cache import checkpointed_states, evaluated_states, forward_states, last_states
from lintfit.memory.micro_batch.language import language
from lintfit.memory.micro_batch.layers import gives_gradient, hooks_frozen, layers_of, waiting_beside
from lintfit.memory.micro_batch.modal_words import modal_words, named_streams
from lintfit.memory.micro_batch.own_inputs import own_inputs
from lintfit.memory.micro_batch.relative import buckets, gradients_waiting, with_convolution
from lintfit.memory.micro_batch.seen_again import seen_again, unfinished
from lintfit.memory.micro_batch.step import Step, pinned
from lintfit.memory.micro_batch.stream import Shape, embedding_bytes, stream_bytes
from lintfit.memory.micro_batch.tables import given, let_go, untaken_mask
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.frozen_parts import frozen_parts
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
    shape = Shape(sequences(spec), -(-spec.seq_len // spec.sequence_parallel), stream_bytes(facts, recipe))
    tokens = shape.batch * shape.seq
    kept = kept_share(spec, states, held)
    checkpoints = spec.gradient_checkpointing is not False
    words = [weight for weight in held.trainables if weight.role == "embedding" and weight.where != "vision"]
    trains_embedding = spec.pipeline_stage != "last" and bool(words)
    left = frozen_parts(spec)
    lookup = at_lookup(spec, recipe)
    flows = seen or trains_embedding or (left.embedding and opens_inputs(spec))
    layers = layers_of(spec, facts, recipe, shape, kept, left, flows=flows)
    by_it = aside(facts, among_layers(spec, recipe), shape.batch, shape.seq, checkpoints)
    reentrant = spec.use_reentrant
    embedded = embedding_bytes(recipe)
    own = own_inputs(facts, lookup, *shape, embedded, checkpoints=checkpoints, reentrant=reentrant)
    again = seen_again(facts, recipe, *shape, checkpoints=checkpoints, reentrant=reentrant)
    layers = waiting_beside(waiting_beside(layers, own.waiting), again.waiting)
    layers = waiting_beside(layers, gradients_waiting(facts, recipe, shape.batch, shape.seq))
    layers = with_convolution(layers, facts, recipe, shape, kept, flows=flows or opens_inputs(spec))
    if not (checkpoints and reentrant):
        layers = waiting_beside(layers, unfinished(facts, recipe, kept))
    flows = not left.of_text or gives_gradient(layers)
    ending = at_end(spec, recipe)
    tail = NO_HEAD if spec.pipeline_stage == "first" else _head(spec, facts, ending, shape, path, kept, flows=flows)
    # The first and the last stage of a pipeline each hold an embedding of their own.
    shares = trains_embedding and facts.tied and spec.method == "full" and spec.pipeline_stage is None
    shares = shares and path != "score"
    exchanged = _exchanged(spec, tokens * facts.hidden * shape.stream)
    opening = dropout_mask(facts, lookup, tokens, checkpoints) + input_leaf(spec, checkpoints, tokens, embedded)
    normed, summands_kept = embedding_norm(spec, lookup, tokens, embedded, checkpoints)
    mapped, mapped_kept = mapped_embeddings(facts, lookup, shape.batch, shape.seq, embedded)
    opening += normed + projected_embeddings(spec, lookup, shape.batch, shape.seq, embedded, checkpoints)
    modal = modal_words(spec, lookup, shape.batch, shape.seq, embedded, checkpoints=checkpoints)
    opening += modal.kept
    opening += again.kept + buckets(facts, lookup, shape.seq)
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
        front=lasting + exchanged + own.kept + buffers(facts, recipe.weights) + of_sound(spec.facts) + opening,
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
        summands=summands(facts, shape.batch, shape.seq, embedded) + mapped,
        summands_kept=summands_kept + mapped_kept,
        evaluated=evaluated_states(spec, facts, tokens, shape.stream) + by_it.cache,
        evaluated_last=last_states(spec, facts, tokens, shape.stream, by_it),
        earlier=Live(earlier) if earlier else NOTHING,
        listed_states=frame(facts).lists_states,
    )


def _head(spec: Spec, facts: ModelFacts, recipe: Recipe, shape: Shape, path: Path, kept: float, *, flows: bool) -> Head:
    """The way from the last layer to the loss, of all tokens or of those that are scored."""
    some = scored(spec, shape.seq)
    part = some if some < shape.seq else None
    return head(facts, recipe, shape.batch, shape.seq, path, stream=shape.stream, kept=kept, scored=part, flows=flows)


def _notes(spec: Spec, facts: ModelFacts) -> tuple[str, ...]:
    """What is left out, or another model's."""
    notes = () if known(spec.facts) else (f"activations of {facts.model_type} follow the nearest architecture's layer",)
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


def kept_share(spec: Spec, states: States, held: Inventory) -> float:
    """The share of a parameter gradient that stays with the rank once it is made."""
    if spec.engine == "fsdp":
        held = flattened(spec, held)
    grown = states.backward_end.get("gradients", 0) - states.first_gradient.get("gradients", 0)
    return min(1.0, max(0.0, grown / held.trainable_bytes)) if held.trainable_bytes else 0.0


def _retains_inputs(spec: Spec) -> bool:
    """Whether no layer's input dies before the backward ends: where adapters stand beside frozen layers alone."""
    return spec.method == "lora" and hooks_frozen(spec)
