"""The moments of a training step at which memory may peak, each with everything that is alive then."""

from __future__ import annotations

from dataclasses import dataclass

from lintfit.memory.activations import known
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
    checkpointed: bool
    embedding_gradient: int
    trained: int
    notes: tuple[str, ...]

    def kept(self, index: int) -> Live:
        """What layer ``index`` keeps from its forward to its backward."""
        layer = self.layers[index]
        return Live(layer.input) if self.checkpointed else layer.saved


def moments(spec: Spec, states: States) -> tuple[Moment, ...]:
    """Every candidate for the peak, in the order of a step."""
    step = record(spec, states)
    return (
        Moment("model loaded", "load", states.load),
        Moment("engine initialized", "initialize", states.initialize),
        *_forward(states, step),
        *_backward(states, step),
        Moment("optimizer step", "step", states.step),
        _evaluate(spec, states, step),
        Moment("checkpoint saved", "save", states.save),
    )


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
    rope = 2 * rounded(seq * facts.head_dim * stream)
    trained = sum(layer.weights for layer in layers) + tail.weights
    embedding = max((w.storage for w in held.trainables if w.role == "embedding"), default=0)
    notes = () if known(facts) else (f"activations of {facts.model_type} follow the nearest architecture's layer",)
    return Step(
        layers=layers,
        head=tail,
        recipe=recipe,
        copies=cached_copies(recipe, held),
        inputs=rounded(tokens * INDEX) + rounded(tokens * INDEX) + rope,
        checkpointed=checkpointed,
        embedding_gradient=embedding,
        trained=trained + embedding,
        notes=notes,
    )


def _kept(spec: Spec, states: States, held: Inventory) -> float:
    """The share of a parameter gradient that stays with the rank once it is made."""
    grown = states.backward_end.get("gradients", 0) - states.first_gradient.get("gradients", 0)
    return min(1.0, max(0.0, grown / held.trainable_bytes)) if held.trainable_bytes else 0.0


def _forward(states: States, step: Step) -> list[Moment]:
    saved = _sum(step.kept(index) for index in range(len(step.layers)))
    tail = step.head
    alive = Live(
        saved.activations + tail.saved.activations + step.inputs,
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
    grown = states.backward_end.get("gradients", 0) - states.first_gradient.get("gradients", 0)
    base = Live(step.inputs)
    result = [
        Moment("loss, backward", "backward", _plus(states.backward_start, _sum((base, below, step.head.loss)))),
        Moment("head, backward", "backward", _plus(states.first_gradient, _sum((base, below, step.head.head)))),
    ]
    done = step.head.weights
    best: Moment | None = None
    for index in range(len(step.layers) - 1, -1, -1):
        layer = step.layers[index]
        below = _minus(below, saved[index])
        own = Live(layer.input) if step.checkpointed else Live()
        share = grown * done // step.trained if step.trained else 0
        alive = _sum((base, below, own, layer.peak, Live(gradients=share)))
        moment = Moment(f"layer {index}, backward", "backward", _plus(states.first_gradient, alive))
        if best is None or moment.total > best.total:
            best = moment
        done += layer.weights
    if best is not None:
        result.append(best)
    result.append(_end(states, step, base))
    return result


def _end(states: States, step: Step, base: Live) -> Moment:
    """The embedding's backward: the last gradient, with the gradient of its output and fp32 scratch.

    Above 3072 tokens torch sums the rows in fp32 (``aten/src/ATen/native/cuda/Embedding.cu``).
    """
    hidden = step.layers[0].input if step.layers else 0
    scratch = 0
    if step.embedding_gradient:
        scratch = hidden
    return Moment("end of backward", "backward", _plus(states.backward_end, _sum((base, Live(temporaries=scratch)))))


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
