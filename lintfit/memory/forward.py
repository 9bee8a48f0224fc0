"""The end of the forward of a step, as moments: the loss, and the last layer where that takes more."""

from __future__ import annotations

from lintfit.memory.activations.form import Live
from lintfit.memory.components import total
from lintfit.memory.engines.states import States
from lintfit.memory.micro_batch.alive import together
from lintfit.memory.micro_batch.step import Step
from lintfit.memory.result import Moment


def forward(states: States, step: Step, saved: Live) -> list[Moment]:
    """The end of the forward: the loss, and the last layer where that takes more. ``saved``: what all layers keep."""
    tail, end = step.head, at_the_loss(step, saved)
    alive = Live(
        saved.activations
        + tail.saved.activations
        + step.inputs
        + step.front
        + step.cached
        + masks_of_the_graph(step)
        + step.last_graph,
        saved.logits + end.logits,
        end.casts,
        tail.forward.temporaries,
        0,
    )
    loss = Moment("loss, forward", "forward", together(states.forward, alive, step.outputs, step.earlier))
    if not step.stretches:
        return [loss]
    layer, room = step.stretches[-1].layer, loss.allocated - total(states.forward)
    if _last_layer(step, saved, layer.ceiling).total <= room:
        return [loss]
    alive = _last_layer(step, saved, layer.forward)
    if alive.total <= room:
        return [loss]
    return [Moment(f"layer {step.count - 1}, forward", "forward", together(states.forward, alive)), loss]


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
    bare = step.head.bare
    if step.head.made is None or not cached:
        return Live(bare.activations, bare.logits, bare.casts + cached, bare.temporaries)
    if step.head.made + cached > bare.logits:
        return Live(bare.activations, step.head.made, cached)
    return bare


def masks_of_the_graph(step: Step) -> int:
    """Bytes of the model's masks once its forward is over: checkpoints hold what their layers were given."""
    return step.masks if step.checkpoints else 0


def _last_layer(step: Step, saved: Live, worst: int) -> Live:
    """What is alive in the forward of the last layer, whose own tensors may take more than the loss: many adapters, or
    a fused loss.

    ``worst``: bytes of the layer's own pass, 0 for a checkpointed one, which takes more when it is run again.
    """
    named = step.named - step.named_saved
    around = step.inputs + step.front + step.cached + step.masks + step.last_graph + named
    alive = Live(
        saved.activations + embedded(step) + around,
        saved.logits,
        # The head's copy is not made yet.
        max(step.cast - step.head.saved.casts, saved.casts),
        max(0, worst - step.stretches[-1].layer.saved.total),
    )
    return alive.plus(step.outputs).plus(step.earlier)


def embedded(step: Step) -> int:
    """Bytes of the embeddings' output, which the model's loop over its layers holds, where nobody saves it."""
    first = step.stretches[0].layer
    if step.summands:
        return step.summands - step.summands_kept
    return first.input if step.count > 1 and not first.keeps_input else 0
