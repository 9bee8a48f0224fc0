"""The moments of a training step at which memory may peak, each with everything that is alive then."""

from __future__ import annotations

from collections.abc import Iterable

from lintfit.frozen import replace
from lintfit.memo import Memo
from lintfit.memory.activations.form import NOTHING, Live
from lintfit.memory.activations.recipe import evaluating
from lintfit.memory.alike import on_any_gpu
from lintfit.memory.components import components, plus
from lintfit.memory.engines.states import States
from lintfit.memory.forward import bare_head, forward, masks_of_the_graph
from lintfit.memory.loss.preference import FUSED, logits_beside_the_reference, scores_reference_beside
from lintfit.memory.micro_batch.alive import (
    copies_by,
    layer_without_graph,
    most_without_graph,
    together,
    without_gradients,
)
from lintfit.memory.micro_batch.autocast import head_copy
from lintfit.memory.micro_batch.halves import of_decoder
from lintfit.memory.micro_batch.step import Step, Stretch
from lintfit.memory.recording import record
from lintfit.memory.result import BEFORE_THE_FIRST_STEP, Components, Moment
from lintfit.memory.rollouts.reference import beside_bytes, reference_gathered
from lintfit.memory.rollouts.rollout import rollout
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.parameters import inventory

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


_FOUND: Memo[tuple[tuple[Moment, ...], tuple[str, ...]]] = Memo(most=256)


def moments(spec: Spec, states: States) -> tuple[tuple[Moment, ...], tuple[str, ...]]:
    """Every candidate for the peak, in the order of a step, and what they leave out.

    Counted once for a run on several GPUs, as somebody tries who states none.
    """
    key = on_any_gpu(spec), spec.micro_batch_size, spec.seq_len
    return _FOUND.get(states, key, lambda: _counted(of_decoder(spec), states))


def _counted(spec: Spec, states: States) -> tuple[tuple[Moment, ...], tuple[str, ...]]:
    step = record(spec, states)
    saved = step.kept()
    points = [
        Moment("model loaded", "load", states.load),
        Moment("engine initialized", "initialize", states.initialize),
        *forward(states, step, saved),
        *_checkpointed(spec, states, step, saved),
        *_reference(spec, states, step, saved),
        *_backward(states, step, saved),
        Moment("optimizer step", "step", together(states.step, step.results())),
    ]
    points += _evaluate(spec, states, step) if spec.evaluation is None else _evaluation(spec, states, step)
    points += rollout(spec, states)
    if spec.trainer == "ppo":
        from lintfit.memory.rollouts.ppo import rounds

        points += rounds(spec, states, step)
    if spec.saves:
        points.append(Moment("checkpoint saved", "save", states.save))
    if spec.images and spec.facts.vision is not None:
        points[2:2] = _encoded(spec, states, step)
    if spec.resumes:
        points.insert(2, Moment("checkpoint loaded", "resume", states.resume))
    lasting, gathered = beside_bytes(spec) + step.buffers, reference_gathered(spec).lasting
    if lasting or gathered:
        points = [_with(point, lasting, gathered) for point in points]
    return tuple(points), step.notes


def _encoded(spec: Spec, states: States, step: Step) -> list[Moment]:
    """The encoding of the images."""
    from lintfit.memory.micro_batch.vision.encoding import features, with_graph

    found = [Moment("images encoded", "forward", together(states.forward, features(spec)))]
    graph = with_graph(spec, step)
    if graph is not None:
        found.append(Moment("images encoded, with a graph", "forward", together(states.forward, graph)))
    return found


def _with(point: Moment, size: int, gathered: int) -> Moment:
    """A moment with ``size`` bytes of frozen models and of the trained one's buffers; ``gathered``: bytes that the
    frozen ones' first forward has left gathered."""
    stays = 0 if point.phase in BEFORE_THE_FIRST_STEP else gathered
    return Moment(
        point.name, point.phase, plus(point.components, components(parameters=size, communication_buffers=stays))
    )


def _checkpointed(spec: Spec, states: States, step: Step, saved: Live) -> list[Moment]:
    """The last layer's forward under checkpointing, beside the attention weights that the one before gave back.

    The model's loop has them in a variable until the layer's own take their place. Where layers give back nothing
    but their output, the forward that is run again has more.
    """
    last = step.count - 1
    if last < 1 or not step.stretches[-1].checkpointed or not step.stretches[-1].layer.returned:
        return []
    layer = step.stretches[-1].layer
    around = step.inputs + step.front + step.cached + step.masks
    working = without_gradients(spec, step.recipe)
    alive = Live(around + working.activations - layer.input, casts=copies_by(step, working))
    parts = together(states.forward, saved, alive, step.earlier)
    return [Moment(f"layer {last}, checkpointed forward", "forward", parts)]


def _reference(spec: Spec, states: States, step: Step, saved: Live) -> list[Moment]:
    """The reference's forward beside the policy's graph: one layer's tensors and its own way through the head.

    TRL does not freeze the reference, so that autocast copies its weights like the policy's. GRPO and RLOO score it
    before there is a graph, which the policy's own forward exceeds but where FSDP gathers the reference.
    """
    gathered = components(communication_buffers=reference_gathered(spec).running)
    if not scores_reference_beside(spec):
        if not gathered or spec.trainer not in FUSED:
            return []
        parts = together(plus(states.evaluate, gathered), Live(step.inputs), beside_the_graph(spec, step))
        return [Moment("reference scored", "evaluate", parts)]
    tail = step.head
    held = int(tail.forward.logits * logits_beside_the_reference(spec))
    graph = Live(
        saved.activations + tail.saved.activations + step.inputs + step.front + masks_of_the_graph(step),
        saved.logits + tail.saved.logits + held,
        saved.casts + tail.saved.casts + (step.cast if spec.method == "full" else 0),
    )
    parts = together(plus(states.forward, gathered), graph, beside_the_graph(spec, step))
    return [Moment("reference, forward", "forward", parts)]


def beside_the_graph(spec: Spec, step: Step) -> Live:
    """The worst of the reference's forward: a layer, or the head and the loss."""
    if most_without_graph(step) <= step.head.bare.total:
        return step.head.bare
    layer = layer_without_graph(spec, step, replace(evaluating(step.recipe), lora=None))
    return max(layer, step.head.bare, key=lambda part: part.total)


def _backward(states: States, step: Step, saved: Live) -> list[Moment]:
    """The loss's backward, the head's, every layer's, the embedding's: the layers one by one, last to first.

    ``saved``: what all layers keep. Offloaded inputs come back one layer ahead of their use (torchtune's and TRL's
    ``OffloadActivations`` prefetch).
    """
    around = Live(step.inputs + step.front + masks_of_the_graph(step))
    around = around.plus(step.outputs)
    if step.in_flight > 1:
        around = around.plus(saved, step.in_flight - 1)
    result = [
        Moment("loss, backward", "backward", together(states.backward_start, around, saved, step.head.loss)),
        Moment("head, backward", "backward", together(states.first_gradient, around, saved, step.head.head)),
    ]
    around = around.plus(Live(step.head.pinned, step.head.lingering, temporaries=step.waits()))
    worst = worst_layer(step, saved)
    if worst is not None:
        index, alive = worst
        parts = together(states.first_gradient, around.plus(Live(-step.gone(index))), alive)
        result.append(Moment(f"layer {index}, backward", "backward", parts))
    if states.layer_end is not None and step.count > 1:
        result.append(_layer_end(states.layer_end, step, around))
    result.append(_end(states, step))
    return result


def _layer_end(held: Components, step: Step, around: Live) -> Moment:
    """The end of a layer's backward: its first norm, when the engine has fetched the layer below.

    What is left of the layer is the norm's fp32 input, the gradients of its input and of the stream, and its own
    checkpointed input; the last such layer where inputs and gradients of those above stay, else the first.
    """
    index = 1 if step.retained else step.count - 1
    layers = step.layers
    layer = layers[index]
    kept = sum([above.input for above in layers[index + 1 :]]) if step.retained else 0
    own = layer.input if step.checkpointed[index] else 0
    rest = Live(own + kept + 2 * layer.input, temporaries=kept + 2 * layer.input)
    parts = together(held, around, step.kept(index), rest)
    return Moment(f"layer {index}, end of its backward", "backward", parts)


def worst_layer(step: Step, saved: Live) -> tuple[int, Live] | None:
    """The layer at whose backward most is alive, and what that is, in the layers alone.

    The layers below still hold what they saved, those above have left their gradients, what their graph holds, and
    their inputs, where FSDP's hooks hold on to them.
    """
    left = saved.total
    done = step.head.weights
    held = 0
    stuck = 0
    hands_on = False  # whether the layer above holds its input, and that input its gradient, which comes in
    worst: tuple[int, int, Stretch, int, int, int, int] | None = None
    above = step.count
    sizes: dict[int, tuple[int, int]] = {}
    for stretch in reversed(step.stretches):
        count, layer, expected = stretch.length, stretch.layer, stretch.waiting
        if above == step.before:
            done += step.embedded
        if id(layer) not in sizes:
            keeps = step.keeps(stretch).total
            sizes[id(layer)] = keeps, step.own(stretch) + layer.peak.total - keeps
        keeps, alone = sizes[id(layer)]
        retained = layer.input if step.retained or layer.retains else 0
        # Inside a stretch what is alive changes by the same amount from one layer to the next: its ends decide.
        for passed in (0, count - 1) if count > 1 else (0,):
            share = int(step.kept_share * (done + passed * layer.weights))
            inputs = held + passed * retained
            pinned = stuck + passed * layer.pinned
            shared = layer.output if (retained if passed else hands_on) else 0
            index = above - 1 - passed
            total = left - passed * keeps + alone + share + 2 * inputs - shared + pinned + expected - step.gone(index)
            if worst is None or total > worst[0]:
                worst = total, index, stretch, share, inputs, pinned, shared
        left -= count * keeps
        done += count * layer.weights
        held += count * retained
        stuck += count * layer.pinned
        hands_on = bool(retained)
        above -= count
    if worst is None:
        return None
    _, index, stretch, share, inputs, pinned, shared = worst
    waiting = inputs - shared + stretch.waiting
    beside = Live(step.own(stretch) + inputs + pinned, temporaries=waiting, gradients=share)
    return index, step.kept(index).plus(beside).plus(stretch.layer.peak)


def _end(states: States, step: Step) -> Moment:
    """The embedding's backward: the last gradient is made.

    A tied embedding's gradient that is summed out of place peaks at the sum, when the scratch is gone.
    """
    if step.words_again:  # the sum with the head's is made by then
        made = states.backward_end.get("temporaries", 0) if step.waiting else 0
        end = plus(states.backward_end, components(temporaries=-made))
        alive = Live(step.inputs, temporaries=step.embedding_scratch)
        return Moment("end of backward", "backward", together(end, alive, step.results()))
    waiting = states.backward_end.get("temporaries", 0) if step.out_of_place else 0
    alive = Live(step.inputs, temporaries=max(0, step.embedding_scratch - waiting // 2))
    return Moment("end of backward", "backward", together(states.backward_end, alive, step.results()))


def _evaluate(spec: Spec, states: States, step: Step) -> list[Moment]:
    """The Trainer's ``prediction_step`` on a batch of the training's size: evaluation mode under ``no_grad``.

    Nothing is saved, dropped or checkpointed; adapters run and autocast copies weights as in training. One layer comes
    after the other, then the loss of whole logits, which are dropped with it unless ``compute_metrics`` wants them
    (``Trainer.evaluate``: ``prediction_loss_only``). The layer is left out where even its training takes less than the
    loss.
    """
    around = Live(step.inputs)
    found = [("evaluation", bare_head(step, step.cast))]
    if most_without_graph(step) + step.cast > found[0][1].total:
        layer = layer_without_graph(spec, step, evaluating(step.recipe))
        found.append(("evaluation, a layer", layer.plus(Live(casts=step.cast - head_cast(spec, step)))))
    if spec.encoded is not None:
        from lintfit.memory.evaluation.points import ENCODER, encoder_without_graph

        found.append((ENCODER, encoder_without_graph(spec)))
    left = step.results() if spec.loop_outputs == "held" else NOTHING
    return [Moment(name, "evaluate", together(states.evaluate, around, part, left)) for name, part in found]


def head_cast(spec: Spec, step: Step) -> int:
    """Bytes of autocast's cached copy of the head, which no layer sees."""
    return head_copy(inventory(spec)) if step.cast and not step.tiled else 0


def _evaluation(spec: Spec, states: States, step: Step) -> list[Moment]:
    """The same on a batch of its own, with what is kept for metrics."""
    from lintfit.memory.evaluation.points import points

    return points(spec, states, step)
