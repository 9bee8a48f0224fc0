"""The moments of a training step at which memory may peak, each with everything that is alive then."""

from __future__ import annotations

from collections.abc import Iterable
from operator import neg

from lintfit.memory.activations.form import Live
from lintfit.memory.components import total
from lintfit.memory.preference import scores_reference_beside
from lintfit.memory.recording import record
from lintfit.memory.result import Components, Moment
from lintfit.memory.rollout import beside_bytes, rollout
from lintfit.memory.spec import Spec
from lintfit.memory.states import States
from lintfit.memory.step import NOTHING, Step, without_gradients

AROUND_THE_LOSS = frozenset({"loss, forward", "loss, backward", "head, backward"})
"""Moments at which the logits are there."""


def at_the_loss(points: Iterable[Moment], peak: Moment) -> int | None:
    """Bytes allocated around the loss where the peak is in the layers' backward, which takes the loss's blocks.

    None where it is elsewhere: gradients, states and the step's copies have the parameters' sizes and are there to
    stay, so that they do not go into blocks of logits.
    """
    if peak.phase != "backward" or peak.name in AROUND_THE_LOSS:
        return None
    return max(point.allocated for point in points if point.name in AROUND_THE_LOSS)


def moments(spec: Spec, states: States) -> tuple[tuple[Moment, ...], tuple[str, ...]]:
    """Every candidate for the peak, in the order of a step, and what they leave out."""
    step = record(spec, states)
    saved = step.all_kept()
    below = _sum(saved)
    points: tuple[Moment, ...] = (
        Moment("model loaded", "load", states.load),
        Moment("engine initialized", "initialize", states.initialize),
        *_forward(states, step, below),
        *_checkpointed(spec, states, step, below),
        *_reference(spec, states, step, below),
        *_backward(states, step, saved, below),
        Moment("optimizer step", "step", _plus(states.step, step.results())),
    )
    points = (
        *points,
        *_evaluate(spec, states, step, max(point.allocated for point in points)),
        *rollout(spec, states),
        Moment("checkpoint saved", "save", states.save),
    )
    if spec.images and spec.facts.vision is not None:
        from lintfit.memory.vision import features

        encoded = Moment("images encoded", "forward", _plus(states.forward, features(spec)))
        points = (*points[:2], encoded, *points[2:])
    if spec.trainer == "ppo":
        from lintfit.memory.ppo import rounds

        points = (*points[:-1], *rounds(spec, states, step), points[-1])
    reference = beside_bytes(spec)
    if reference:
        points = tuple(_with_reference(point, reference) for point in points)
    return points, step.notes


def _with_reference(point: Moment, size: int) -> Moment:
    parts = {**point.components, "parameters": point.components.get("parameters", 0) + size}
    return Moment(point.name, point.phase, parts)


def _forward(states: States, step: Step, saved: Live) -> list[Moment]:
    tail = step.head
    alive = Live(
        saved.activations
        + tail.saved.activations
        + step.inputs
        + step.front
        + step.cached
        + step.masks
        + step.last_graph,
        saved.logits + tail.saved.logits + tail.forward.logits,
        max(step.copies, saved.casts + tail.saved.casts),
        tail.forward.temporaries,
        0,
    )
    alive = _sum((alive, step.outputs, step.earlier))
    loss = Moment("loss, forward", "forward", _plus(states.forward, alive))
    if not step.layers:
        return [loss]
    layer, room = step.layers[-1], loss.allocated - total(states.forward)
    if _last_layer(step, saved, layer.ceiling).total <= room:
        return [loss]
    alive = _last_layer(step, saved, layer.forward)
    if alive.total <= room:
        return [loss]
    return [Moment(f"layer {len(step.layers) - 1}, forward", "forward", _plus(states.forward, alive)), loss]


def _last_layer(step: Step, saved: Live, worst: int) -> Live:
    """What is alive in the forward of the last layer, whose own tensors may take more than the loss: many adapters, or
    a fused loss.

    ``worst``: bytes of the layer's own pass, 0 for a checkpointed one, which takes more when it is run again.
    """
    alive = Live(
        saved.activations + embedded(step) + step.inputs + step.front + step.cached + step.masks + step.last_graph,
        saved.logits,
        # The head's copy is not made yet.
        max(step.copies - step.head.saved.casts, saved.casts),
        max(0, worst - step.layers[-1].saved.total),
    )
    return _sum((alive, step.outputs, step.earlier))


def _checkpointed(spec: Spec, states: States, step: Step, saved: Live) -> list[Moment]:
    """The last layer's forward under checkpointing, beside the attention weights that the one before gave back.

    The model's loop has them in a variable until the layer's own take their place. Where layers give back nothing
    but their output, the forward that is run again has more.
    """
    last = len(step.layers) - 1
    if last < 1 or not step.checkpointed[last] or not step.layers[last].returned:
        return []
    layer = step.layers[last]
    around = step.inputs + step.front + step.cached + step.masks
    working = without_gradients(spec, step.recipe) - layer.input + layer.returned
    alive = _sum((saved, Live(around + working, casts=step.copies), step.outputs, step.earlier))
    return [Moment(f"layer {last}, forward", "forward", _plus(states.forward, alive))]


def embedded(step: Step) -> int:
    """Bytes of the embeddings' output, which the model's loop over its layers holds, where nobody saves it."""
    first = step.layers[0]
    return first.input if len(step.layers) > 1 and not first.keeps_input else 0


def _reference(spec: Spec, states: States, step: Step, saved: Live) -> list[Moment]:
    """The reference's forward beside the policy's graph: one layer's tensors and its own way through the head.

    TRL does not freeze the reference, so that autocast copies its weights like the policy's.
    """
    if not scores_reference_beside(spec):
        return []
    tail = step.head
    alive = Live(
        saved.activations + tail.saved.activations + step.inputs + step.front + step.masks + _working(step),
        saved.logits + tail.saved.logits + tail.forward.logits,
        saved.casts + tail.saved.casts + (step.copies if spec.method == "full" else 0),
        tail.forward.temporaries,
    )
    return [Moment("reference, forward", "forward", _plus(states.forward, alive))]


def _working(step: Step) -> int:
    """Bytes of one layer's tensors in a forward pass that keeps none of them."""
    return step.layers[0].peak.activations // 2 if step.layers else 0


def _backward(states: States, step: Step, saved: list[Live], below: Live) -> list[Moment]:
    """The loss's backward, the head's, every layer's, the embedding's: the layers one by one, last to first.

    Offloaded inputs come back one layer ahead of their use (torchtune's and TRL's ``OffloadActivations`` prefetch).
    """
    base = Live(step.inputs + step.front + (step.masks if any(step.checkpointed) else 0))
    if step.in_flight > 1:
        base = _sum((base, *(below for _ in range(step.in_flight - 1))))
    base = _sum((base, step.outputs))
    result: list[Moment] = [
        Moment("loss, backward", "backward", _plus(states.backward_start, _sum((base, below, step.head.loss)))),
        Moment("head, backward", "backward", _plus(states.first_gradient, _sum((base, below, step.head.head)))),
    ]
    base = _sum((base, Live(step.head.pinned, step.head.lingering, temporaries=step.waits())))
    best = _worst_layer(step, saved, below, base)
    if best is not None:
        result.append(Moment(f"layer {best[0]}, backward", "backward", _plus(states.first_gradient, best[1])))
    if states.layer_end is not None and len(step.layers) > 1:
        result.append(_layer_end(states.layer_end, step, saved, base))
    result.append(_end(states, step))
    return result


def _layer_end(held: Components, step: Step, saved: list[Live], base: Live) -> Moment:
    """The end of a layer's backward: its first norm, when the engine has fetched the layer below.

    What is left of the layer is the norm's fp32 input, the gradients of its input and of the stream, and its own
    checkpointed input; the last such layer where inputs and gradients of those above stay, else the first.
    """
    index = 1 if step.retained else len(step.layers) - 1
    layer = step.layers[index]
    kept = sum(above.input for above in step.layers[index + 1 :]) if step.retained else 0
    own = layer.input if step.checkpointed[index] else 0
    rest = Live(own + kept + 2 * layer.input, temporaries=kept + 2 * layer.input)
    return Moment(f"layer {index}, end of its backward", "backward", _plus(held, _sum((base, *saved[:index], rest))))


def _worst_layer(step: Step, saved: list[Live], below: Live, base: Live) -> tuple[int, Live] | None:
    """The layer at whose backward most is alive, and what that is.

    The layers below still hold what they saved, those above have left their gradients, what their graph holds, and
    their inputs, where FSDP's hooks hold on to them.
    """
    left = below.total
    done = step.head.weights
    held = 0
    stuck = 0
    worst: tuple[int, int, int, int, int, int] | None = None
    inputs = 2 if step.offloaded else 1
    sizes: dict[int, tuple[int, int, int]] = {}
    layers = step.layers
    top = len(layers) - 1
    # Inside a run of equal layers what is alive changes by the same amount from one to the next: its ends decide.
    ends = [i for i in range(top, -1, -1) if i in (0, top) or not layers[i - 1] is layers[i] is layers[i + 1]]
    above = top + 1
    for index in ends:
        layer = layers[index]
        if id(layer) not in sizes:
            own = layer.input * inputs + layer.marked if step.checkpointed[index] else 0
            sizes[id(layer)] = saved[index].total, own, layer.peak.total
        keeps, own, peak = sizes[id(layer)]
        passed = above - index - 1
        if passed:
            left -= passed * keeps
            done += passed * layer.weights
            held += passed * layer.input if step.retained else 0
            stuck += passed * layer.pinned
        above = index
        left -= keeps
        share = int(step.kept_share * done)
        # The gradient that comes in is the one that the layer above's input holds.
        shared = layer.output if held else 0
        total = left + own + peak + share + 2 * held - shared + stuck
        if worst is None or total > worst[0]:
            worst = (total, index, own, share, held, stuck)
        done += layer.weights
        stuck += layer.pinned
        if step.retained:
            held += layer.input
    if worst is None:
        return None
    _, index, own, share, held, stuck = worst
    waiting = held - step.layers[index].output if held else 0
    beside = Live(own + held + stuck, temporaries=waiting, gradients=share)
    return index, _sum((base, *_lower(saved, below, index), beside, step.layers[index].peak))


def _lower(saved: list[Live], below: Live, index: int) -> tuple[Live, ...]:
    """What the layers below one keep; ``below`` is what all keep."""
    if 2 * index < len(saved):
        return tuple(saved[:index])
    return below, *[Live(*map(neg, kept)) for kept in saved[index:]]


def _end(states: States, step: Step) -> Moment:
    """The embedding's backward: the last gradient is made.

    A tied embedding's gradient that is summed out of place peaks at the sum, when the scratch is gone.
    """
    waiting = states.backward_end.get("temporaries", 0) if step.out_of_place else 0
    alive = Live(step.inputs, temporaries=max(0, step.embedding_scratch - waiting // 2))
    alive = _sum((alive, step.results()))
    return Moment("end of backward", "backward", _plus(states.backward_end, alive))


def _evaluate(spec: Spec, states: States, step: Step, most: int) -> list[Moment]:
    """A forward pass without gradients on a batch of the training size: one layer after the other, then the loss.

    ``most``: bytes of the largest moment of training. Only where a layer may exceed it is its pass followed.
    """
    tail = step.head
    around = step.inputs + step.front + step.masks
    last = step.layers[-1].output if step.layers else 0
    loss = Live(around + last, tail.saved.logits + tail.forward.logits, step.copies)
    found = [Moment("evaluation", "evaluate", _plus(states.evaluate, loss))]
    working = _working(step)
    if sum(states.evaluate.values()) + around + working + step.copies > most:
        working = max(without_gradients(spec, step.recipe), last)
    layer = Live(around + working, 0, step.copies)
    return [*found, Moment("evaluation, a layer", "evaluate", _plus(states.evaluate, layer))]


def _sum(parts: Iterable[Live]) -> Live:
    some = [part for part in parts if part is not NOTHING]
    return Live(*map(sum, zip(*some, strict=True))) if len(some) != 1 else some[0]


def _plus(states: Components, alive: Live) -> Components:
    """States and what is alive beside them, by the contract's component names; weight copies are temporaries."""
    activations, logits, casts, temporaries, gradients = alive
    result = dict(states)
    if activations:
        result["activations"] = result.get("activations", 0) + activations
    if logits:
        result["logits"] = result.get("logits", 0) + logits
    if casts + temporaries:
        result["temporaries"] = result.get("temporaries", 0) + casts + temporaries
    if gradients:
        result["gradients"] = result.get("gradients", 0) + gradients
    return result
