"""The forward of a step, as moments: the loss, and a layer where that takes more."""

from __future__ import annotations

from lintfit.memory.activations.form import Live
from lintfit.memory.components import total
from lintfit.memory.engines.states import States
from lintfit.memory.micro_batch.alive import together
from lintfit.memory.micro_batch.step import Step
from lintfit.memory.result import Moment

LAST_NORM = "last norm, forward"


def forward(states: States, step: Step, saved: Live) -> list[Moment]:
    """The end of the forward: the loss, and a layer where that takes more. ``saved``: what all layers keep."""
    tail, end = step.head, at_the_loss(step, saved)
    alive = Live(
        saved.activations
        + tail.saved.activations
        + step.inputs
        + step.front
        + step.cached
        + masks_of_the_graph(step)
        + step.last_graph
        + step.answered,
        saved.logits + end.logits,
        end.casts,
        tail.forward.temporaries,
        0,
    )
    loss = Moment("loss, forward", "forward", together(states.forward, alive, step.earlier))
    if not step.stretches:
        return [loss]
    found, room = [loss], loss.allocated - total(states.forward)
    if step.named + step.masks > step.named_saved and step.last_norm:
        normed = in_last_norm(step, saved)
        if normed.total > room:
            found, room = [Moment(LAST_NORM, "forward", together(states.forward, normed)), loss], normed.total
    passing = worst_layer(step, saved, room)
    if passing is None:
        return found
    index, alive = passing
    return [Moment(f"layer {index}, forward", "forward", together(states.forward, alive)), *found]


def in_last_norm(step: Step, saved: Live) -> Live:
    """What is alive in the norm behind the last layer, beside what the model has names for."""
    return _in_layer(step, saved, step.cast - step.head.saved.casts, step.count, step.last_norm)


def worst_layer(step: Step, saved: Live, room: int) -> tuple[int, Live] | None:
    """The layer whose forward takes most, and what is alive in it; None where none takes more bytes than ``room``.

    Of each kind the last one, which has most behind it: one that leaves no graph, or mixes tokens in another way, may
    take more than the last of all.
    """
    found = None
    seen: set[int] = set()
    end = step.count
    # The head's copy is not made yet, and in earlier layers nobody knows which are, but for those that are saved.
    copies = step.cast - step.head.saved.casts
    for stretch in reversed(step.stretches):
        last, end = end - 1, end - stretch.length
        layer = stretch.layer
        if id(layer) in seen or last < step.before:
            continue
        seen.add(id(layer))
        if _in_layer(step, saved, copies, last, layer.ceiling - layer.saved.total).total <= room:
            continue
        behind, cast = (saved, copies) if last == step.count - 1 else (step.kept(last + 1), 0)
        alive = _in_layer(step, behind, cast, last, layer.forward - layer.saved.total)
        if alive.total > room:
            found, room = (last, alive), alive.total
    return found


def at_the_loss(step: Step, saved: Live) -> Live:
    """Logits, and autocast's copies of weights, at the worst of the head and the loss.

    Autocast ends with the model's forward, and its cache with it; the loss of TRL's trainers from whole logits, or
    scores, runs behind. ``saved``: what all layers keep.
    """
    tail = step.head
    stay = saved.casts + tail.saved.casts
    loss = Live(logits=tail.saved.logits + tail.forward.logits, casts=stay)
    within = Live(logits=loss.logits if tail.made is None else tail.made, casts=max(step.cast, stay))
    return loss if tail.made is not None and loss.total >= within.total else within


def bare_head(step: Step, cached: int) -> Live:
    """The same without a graph, with all that the head takes; ``cached``: bytes of autocast's copies at the head."""
    answered = step.answered if step.answered_bare is None else step.answered_bare
    bare = step.head.bare.plus(Live(answered))
    if step.head.made is None or not cached:
        return Live(bare.activations, bare.logits, bare.casts + cached, bare.temporaries)
    if step.head.made + cached > bare.logits:
        return Live(answered, step.head.made, cached)
    return bare


def masks_of_the_graph(step: Step) -> int:
    """Bytes of the model's masks once its forward is over: checkpoints hold what their layers were given."""
    return step.masks - step.untaken if step.checkpoints else 0


def _in_layer(step: Step, saved: Live, copies: int, index: int, beside: int) -> Live:
    """What is alive in the forward of a layer, whose own tensors may take more than the loss: many adapters, or a fused
    loss. ``saved``: what layers keep up to this one; ``copies``: bytes of autocast's copies by then.

    ``beside``: bytes that the layer's own pass has beside what it saves; a checkpointed one takes more when it is run
    again.
    """
    named = step.named - step.named_saved
    around = step.inputs + step.front + step.cached + step.masks + step.last_graph + named
    alive = Live(
        saved.activations + embedded(step, index) + step.named_result(index) + step.listed_before(index) + around,
        saved.logits,
        max(copies, saved.casts),
        max(0, beside),
    )
    return alive.plus(step.earlier)


def embedded(step: Step, index: int) -> int:
    """Bytes of the embeddings' output, which the model's loop holds in a layer's forward, where nobody saves it."""
    first = step.stretches[step.before].layer
    if step.summands:
        return step.summands - step.summands_kept
    return first.input if index > step.before and not first.keeps_input else 0
