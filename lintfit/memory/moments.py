"""The moments of a training step at which memory may peak, each with everything that is alive then."""

from __future__ import annotations

from dataclasses import dataclass

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations import heads_of, known
from lintfit.memory.activations.attention import mask_bytes, slides
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.profile import Profile, profile
from lintfit.memory.activations.recipe import Recipe, of
from lintfit.memory.activations.tape import Live, rounded
from lintfit.memory.autocast import cached_copies
from lintfit.memory.logits import Head, head
from lintfit.memory.parameters import Inventory, inventory
from lintfit.memory.result import Components, Moment
from lintfit.memory.spec import Spec
from lintfit.memory.states import States

SORTED_EMBEDDING = 3072
"""Tokens above which the embedding's backward sorts (``embedding_dense_backward_cuda``)."""

LEARNED_POSITIONS = frozenset({"gpt2", "gpt_bigcode", "opt", "bloom"})
"""Model types without rotary embeddings."""

INDEX = 8
"""Bytes of a token id (int64)."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one micro-batch of a run saves: its layers in order, its head, and the embedding's side."""

    layers: tuple[Profile, ...]
    head: Head
    recipe: Recipe
    copies: int
    inputs: int
    front: int
    masks: int
    kept_share: float
    checkpointed: bool
    retained: bool
    embedding_scratch: int
    out_of_place: bool
    notes: tuple[str, ...]

    def kept(self, index: int) -> Live:
        """What layer ``index`` keeps from its forward to its backward."""
        layer = self.layers[index]
        return Live(layer.input) if self.checkpointed else layer.saved


def moments(spec: Spec, states: States) -> tuple[tuple[Moment, ...], tuple[str, ...]]:
    """Every candidate for the peak, in the order of a step, and what they leave out."""
    step = record(spec, states)
    points = (
        Moment("model loaded", "load", states.load),
        Moment("engine initialized", "initialize", states.initialize),
        *_forward(states, step),
        *_backward(states, step),
        Moment("optimizer step", "step", states.step),
        _evaluate(spec, states, step),
        Moment("checkpoint saved", "save", states.save),
    )
    return points, step.notes


def record(spec: Spec, states: States) -> Step:
    """Count the layers, the head and the embedding of one micro-batch on one rank."""
    recipe = of(spec)
    held = inventory(spec)
    facts = spec.facts
    batch, seq = spec.micro_batch_size, -(-spec.seq_len // spec.sequence_parallel)
    stream = recipe.weights
    kept = _kept(spec, states, held)
    checkpointed = bool(spec.gradient_checkpointing)
    frozen_input = recipe.frozen and not checkpointed and not recipe.quantized
    count = -(-facts.layers // spec.pipeline_parallel)
    layers = tuple(
        profile(
            facts,
            recipe,
            batch,
            seq,
            index,
            stream=stream,
            flows=not (frozen_input and index == 0),
            checkpointed=checkpointed,
            reentrant=spec.use_reentrant,
            kept=kept,
        )
        for index in range(count)
    )
    tail = head(Layer(facts, recipe, batch, seq), spec.loss, stream=stream, kept=kept)
    tokens = batch * seq
    rope = 0 if facts.model_type in LEARNED_POSITIONS else 2 * rounded(seq * facts.head_dim * stream)
    trains_embedding = any(w.role == "embedding" for w in held.trainables)
    notes = () if known(facts) else (f"activations of {facts.model_type} follow the nearest architecture's layer",)
    return Step(
        layers=layers,
        head=tail,
        recipe=recipe,
        copies=cached_copies(recipe, held),
        inputs=rounded(tokens * INDEX),
        front=rope + _embedding_dropout(facts, recipe, tokens),
        masks=_masks(facts, recipe, batch, seq, stream),
        kept_share=kept,
        checkpointed=checkpointed,
        retained=checkpointed and _retains_inputs(spec),
        embedding_scratch=_embedding_scratch(tokens, facts.hidden, stream) if trains_embedding else 0,
        out_of_place=trains_embedding and facts.tied and not recipe.autocast,
        notes=notes,
    )


def _kept(spec: Spec, states: States, held: Inventory) -> float:
    """The share of a parameter gradient that stays with the rank once it is made."""
    grown = states.backward_end.get("gradients", 0) - states.first_gradient.get("gradients", 0)
    return min(1.0, max(0.0, grown / held.trainable_bytes)) if held.trainable_bytes else 0.0


def _retains_inputs(spec: Spec) -> bool:
    """FSDP 1 over frozen layers with reentrant checkpointing: no layer's input dies before the backward ends.

    ``_register_post_backward_reshard_only_hook`` keeps a hook on the detached input of every frozen unit, and the
    hook its gradient accumulator, until ``_post_backward_final_callback``: input and gradient stay.
    """
    first = spec.fsdp is None or spec.fsdp.version == 1
    return spec.engine == "fsdp" and first and spec.method == "lora" and spec.use_reentrant


def _masks(facts: ModelFacts, recipe: Recipe, batch: int, seq: int, item: int) -> int:
    windows = {slides(heads_of(facts, index), seq) for index in range(min(facts.layers, 12))}
    kinds = len({heads_of(facts, index).window for index in range(min(facts.layers, 12))})
    return mask_bytes(recipe, kinds, True in windows, batch, seq, item)


def _embedding_dropout(facts: ModelFacts, recipe: Recipe, tokens: int) -> int:
    """The mask of GPT-2's dropout behind the embeddings (one byte an element)."""
    rate = facts.config.get("embd_pdrop", 0.1 if facts.model_type in ("gpt2", "gpt_bigcode") else 0.0)
    return rounded(tokens * facts.hidden) if rate and recipe.dropout else 0


def _embedding_scratch(tokens: int, hidden: int, item: int) -> int:
    """The embedding's incoming gradient, and above 3072 tokens fp32 rows and sorted indices.

    ``aten/src/ATen/native/cuda/Embedding.cu``: the sorting kernel sums rows in fp32 and holds six int64 a token.
    """
    scratch = tokens * hidden * item
    return scratch + (tokens * (4 * hidden + 6 * INDEX) if tokens > SORTED_EMBEDDING else 0)


def _forward(states: States, step: Step) -> list[Moment]:
    saved = _sum(step.kept(index) for index in range(len(step.layers)))
    tail = step.head
    alive = Live(
        saved.activations + tail.saved.activations + step.inputs + step.front + step.masks,
        saved.logits + tail.saved.logits + tail.forward.logits,
        max(step.copies, saved.casts + tail.saved.casts),
        tail.forward.temporaries,
        0,
    )
    return [Moment("loss, forward", "forward", _plus(states.forward, alive))]


def _backward(states: States, step: Step) -> list[Moment]:
    """The loss's backward, the head's, every layer's, the embedding's: the layers one by one, last to first."""
    saved = [step.kept(index) for index in range(len(step.layers))]
    below = _sum(saved)
    base = Live(step.inputs + step.front + (step.masks if step.checkpointed else 0))
    result = [
        Moment("loss, backward", "backward", _plus(states.backward_start, _sum((base, below, step.head.loss)))),
        Moment("head, backward", "backward", _plus(states.first_gradient, _sum((base, below, step.head.head)))),
    ]
    done = step.head.weights
    best: Moment | None = None
    for index in range(len(step.layers) - 1, -1, -1):
        layer = step.layers[index]
        below = _minus(below, saved[index])
        if step.retained and index + 1 < len(step.layers):
            above = step.layers[index + 1].input
            base = _sum((base, Live(above, temporaries=above)))
        own = Live(layer.input) if step.checkpointed else Live()
        alive = _sum((base, below, own, layer.peak, Live(gradients=int(step.kept_share * done))))
        moment = Moment(f"layer {index}, backward", "backward", _plus(states.first_gradient, alive))
        if best is None or moment.total > best.total:
            best = moment
        done += layer.weights
    if best is not None:
        result.append(best)
    result.append(_end(states, step))
    return result


def _end(states: States, step: Step) -> Moment:
    """The embedding's backward: the last gradient is made.

    A tied embedding's gradient that is summed out of place peaks at the sum, when the scratch is gone.
    """
    waiting = states.backward_end.get("temporaries", 0) if step.out_of_place else 0
    alive = Live(step.inputs, temporaries=max(0, step.embedding_scratch - waiting // 2))
    return Moment("end of backward", "backward", _plus(states.backward_end, alive))


def _evaluate(spec: Spec, states: States, step: Step) -> Moment:
    """A forward pass without gradients on a batch of the training size: one layer's tensors and the logits."""
    layer = step.layers[0] if step.layers else None
    working = layer.peak.activations // 2 if layer else 0
    tail = step.head
    alive = Live(working + step.inputs, tail.saved.logits + tail.forward.logits, step.copies, 0, 0)
    return Moment("evaluation", "evaluate", _plus(states.evaluate, alive))


def _sum(parts: object) -> Live:
    total = [0, 0, 0, 0, 0]
    for part in parts:  # type: ignore[attr-defined]
        for index, size in enumerate(part):
            total[index] += size
    return Live(*total)


def _minus(a: Live, b: Live) -> Live:
    return Live(*(x - y for x, y in zip(a, b, strict=True)))


def _plus(states: Components, alive: Live) -> Components:
    """States and what is alive beside them, by the contract's component names; weight copies are temporaries."""
    result = dict(states)
    for name, size in (
        ("activations", alive.activations),
        ("logits", alive.logits),
        ("temporaries", alive.casts + alive.temporaries),
        ("gradients", alive.gradients),
    ):
        if size:
            result[name] = result.get(name, 0) + size
    return result
