"""The step of one model of a micro-batch, counted: its layers, its head, and what lies around them."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.form import NOTHING, Live
from lintfit.memory.activations.frames import embedding_width
from lintfit.memory.activations.recipe import Beside
from lintfit.memory.activations.tape import INDEX, rounded
from lintfit.memory.engines.fsdp import flattened
from lintfit.memory.engines.gradients import sums_out_of_place
from lintfit.memory.engines.states import States
from lintfit.memory.loss.head import Head
from lintfit.memory.loss.logits import head
from lintfit.memory.loss.preference import Path, scored
from lintfit.memory.micro_batch.around import Around
from lintfit.memory.micro_batch.aside import aside
from lintfit.memory.micro_batch.autocast import cached_copies, ending_copies, head_copy
from lintfit.memory.micro_batch.embedding import scratch, trains_embedding
from lintfit.memory.micro_batch.features import around_layers
from lintfit.memory.micro_batch.kv_cache import caches_of
from lintfit.memory.micro_batch.layers import gives_gradient, hooks_frozen, layers_of, waiting_beside
from lintfit.memory.micro_batch.model import Model, model_of, shape_of
from lintfit.memory.micro_batch.pipeline import exchanged_bytes, in_flight
from lintfit.memory.micro_batch.step import Step, Stretch, pinned
from lintfit.memory.micro_batch.stream import Shape
from lintfit.memory.micro_batch.tables import shared_tables
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.lora import flattens_adapters
from lintfit.memory.tensors.parameters import Inventory


def record_model(
    spec: Spec, states: States, held: Inventory, path: Path, *, seen: bool = False, beside: Beside | None = None
) -> Step:
    """Count the layers, the head and the embedding of one model of a micro-batch, with its way through the loss.

    ``held``: all that is trained together. ``seen``: whether features of images that need a gradient are put in
    between the embeddings. ``beside``: what layers attend to beside the text.
    """
    model = model_of(spec, beside)
    facts, recipe, shape = model.facts, model.recipe, shape_of(spec, model)
    tokens, kept = shape.batch * shape.seq, kept_share(spec, states, held)
    trains_words = spec.pipeline_stage != "last" and trains_embedding(held)
    around = around_layers(model, shape)
    layers = _layers(spec, model, shape, kept, around, flows=seen or trains_words)
    tail = NO_HEAD if spec.pipeline_stage == "first" else _head(spec, model, shape, path, kept, layers)
    shared = shared_tables(model, shape)
    by_it = aside(facts, model.layers, shape.batch, shape.seq, model.checkpoints)
    cache = caches_of(spec, model, shape, by_it)
    ties = trains_words and path != "score" and _shares_weight(spec, facts)
    exchanged = exchanged_bytes(spec, tokens * facts.hidden * model.stream)
    return Step(
        stretches=tuple(layers),
        head=tail,
        recipe=recipe,
        copies=_copies(spec, model, held),
        ending_copies=ending_copies(held) if recipe.autocast and spec.engine != "fsdp" else 0,
        tiled=head_copy(held) if recipe.autocast and path == "chunked" and spec.engine != "fsdp" else 0,
        inputs=rounded(tokens * INDEX),
        front=shared.lasting + exchanged + around.kept + around.graphed,
        opening=around.graphed,
        opening_casts=around.casts,
        cached=cache.checkpointed,
        masks=shared.passing + shared.untaken,
        untaken=shared.untaken,
        let_go=shared.let_go,
        kept_share=kept,
        retained=model.checkpoints and _retains_inputs(spec),
        offloaded=spec.activation_offload,
        in_flight=in_flight(spec),
        embedding_scratch=scratch(tokens, embedding_width(facts), model.stream) if trains_words else 0,
        waiting=tail.weights if ties else 0,
        last_graph=tail.pinned + pinned(layers) if recipe.litgpt else 0,
        out_of_place=ties and sums_out_of_place(spec),
        exchanged=exchanged,
        buffers=around.buffers,
        notes=model.notes,
        named=by_it.named + around.named,
        listed=around.bare,
        named_saved=by_it.lasting + around.named_kept,
        summands=around.summands,
        summands_kept=around.summands_kept,
        evaluated=cache.evaluated,
        evaluated_last=cache.evaluated_last,
        earlier=Live(cache.unsaved) if cache.unsaved else NOTHING,
        listed_states=model.how.lists_states,
    )


def _layers(spec: Spec, model: Model, shape: Shape, kept: float, around: Around, *, flows: bool) -> list[Stretch]:
    """The layers, with what waits beside each of them while it runs backward.

    ``flows``: whether the embeddings' output, or what is put in between, needs a gradient that somebody asks for.
    """
    opened = flows or (model.left.embedding and model.opens)
    layers = waiting_beside(layers_of(spec, model, shape, kept, flows=opened), around.waiting)
    if model.how.positions == "relative":
        from lintfit.memory.micro_batch.relative import with_convolution

        layers = with_convolution(layers, model, shape, kept, flows=flows or model.opens)
    if model.own.turn is not None:
        from lintfit.memory.micro_batch.seen_again import unfinished

        layers = waiting_beside(layers, unfinished(model, kept))
    return layers


def _shares_weight(spec: Spec, facts: ModelFacts) -> bool:
    """Whether the head is the embedding; the first and the last stage of a pipeline each hold one of their own."""
    return facts.tied and spec.method == "full" and spec.pipeline_stage is None


def _copies(spec: Spec, model: Model, held: Inventory) -> int:
    """Bytes of autocast's copies of all weights."""
    if spec.engine == "fsdp":
        return 0
    views = model.own.views is not None and model.own.views(model.facts)
    return cached_copies(model.recipe, held, experts=model.own.casts_experts, sees=bool(spec.images), views=views)


def _head(spec: Spec, model: Model, shape: Shape, path: Path, kept: float, layers: list[Stretch]) -> Head:
    """The way from the last layer to the loss, of all tokens or of those that are scored."""
    flows = not model.left.of_text or gives_gradient(layers)
    some = scored(spec, shape.seq)
    part = some if some < shape.seq else None
    return head(
        model.facts,
        model.ending,
        shape.batch,
        shape.seq,
        path,
        stream=shape.stream,
        kept=kept,
        scored=part,
        flows=flows,
    )


NO_HEAD = Head(NOTHING, NOTHING, NOTHING, NOTHING, 0, NOTHING)
"""The head of a stage that has none."""


def kept_share(spec: Spec, states: States, held: Inventory) -> float:
    """The share of a parameter gradient that stays with the rank once it is made."""
    if spec.engine == "fsdp":
        held = flattened(spec, held)
    grown = states.backward_end.get("gradients", 0) - states.first_gradient.get("gradients", 0)
    return min(1.0, max(0.0, grown / held.trainable_bytes)) if held.trainable_bytes else 0.0


def _retains_inputs(spec: Spec) -> bool:
    """Whether no layer's input dies before the backward ends: where adapters stand beside frozen layers alone."""
    return spec.method == "lora" and hooks_frozen(spec) and not flattens_adapters(spec)
