"""An evaluation in a loop of the script's own that switches no gradients off."""

from __future__ import annotations

from lintfit.frozen import replace
from lintfit.memory.activations.form import Live
from lintfit.memory.engines.states import States
from lintfit.memory.evaluation.batch import Round
from lintfit.memory.forward import forward
from lintfit.memory.loss.preference import loss_path
from lintfit.memory.micro_batch.alive import together
from lintfit.memory.micro_batch.model_step import record_model
from lintfit.memory.micro_batch.step import Step
from lintfit.memory.recording import record
from lintfit.memory.result import ALLOCATED, Moment
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.parameters import inventory

GRAPH = "evaluation, with its graph"


def with_graph(run: Round, states: States, left: Live) -> Moment:
    """The forward of a batch with gradients on, beside the graph of the batch before where a variable holds it.

    Layers are checkpointed while they train alone (``GradientCheckpointingLayer``: ``self.training``), and nothing is
    dropped. ``left``: what the training loop's variable still holds.
    """
    step = graph_of(run, states)
    return Moment(GRAPH, "evaluate", together(largest(states, step).components, earlier_graph(run, step), left))


def largest(states: States, step: Step) -> Moment:
    """Of the forward of such a batch the point with most: the loss, or a layer."""
    return max(forward(states, step, step.kept()), key=ALLOCATED)


def graph_of(run: Round, states: States) -> Step:
    """What a batch saves with gradients on.

    Checkpointing over adapters has opened the embeddings' output for gradients (``enable_input_require_grads``), whose
    hook stays.
    """
    spec = graphed(run.spec)
    if run.spec.gradient_checkpointing is False or run.spec.method != "lora" or run.spec.images:
        return record(spec, states)
    return record_model(spec, states, inventory(spec), loss_path(spec), seen=True)


def graphed(spec: Spec) -> Spec:
    """The run as its evaluation makes a graph of it."""
    return replace(spec, gradient_checkpointing=False, lora_dropout=0.0, evaluation=None, loop_outputs="dropped")


def earlier_graph(run: Round, step: Step) -> Live:
    """What the graph of the batch before keeps, and its logits, which the loop's variable still has."""
    if not run.in_variable:
        return Live()
    saved, tail = step.kept(), step.head.saved
    return Live(saved.activations + tail.activations, saved.logits + tail.logits + run.made, saved.casts + tail.casts)
