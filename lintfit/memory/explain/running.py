"""Terms of what a micro-batch adds to the states: activations, logits, temporaries of the passes."""

from __future__ import annotations

from lintfit.memory.activations.form import Live
from lintfit.memory.explain import layers, scoring
from lintfit.memory.explain.passing import (
    ANSWERED,
    Pass,
    below,
    casts,
    encoded,
    encoded_with_graph,
    forward,
    head_terms,
    inputs,
    kept,
)
from lintfit.memory.explain.term import Term, term
from lintfit.memory.forward import LAST_NORM, at_the_loss
from lintfit.memory.result import Moment


def terms(run: Pass, moment: Moment) -> list[Term]:
    """What stands beside the states at a moment; nothing at load, initialization and save."""
    if run.spec.trainer != "ppo":
        return [*_passes(run, moment), *_held(run, moment)]
    from lintfit.memory.explain import ppo

    held = ppo.held(run.spec, run.step, moment.name)
    return [*_passes(run, moment), *held, *ppo.rounds(run.spec, run.states, run.step, moment)]


def _held(run: Pass, moment: Moment) -> list[Term]:
    if run.spec.loop_outputs == "dropped":
        return []
    from lintfit.memory.explain import loop_outputs

    return loop_outputs.terms(run, moment)


def _passes(run: Pass, moment: Moment) -> list[Term]:
    step = run.step
    if moment.in_evaluation and run.spec.evaluation is not None:
        from lintfit.memory.explain import evaluating

        return evaluating.terms(run, moment)
    match moment.name:
        case "loss, forward":
            tail, end = step.head, at_the_loss(step, step.kept())
            live = Live(tail.saved.activations, end.logits, temporaries=tail.forward.temporaries)
            return [
                *forward(run),
                *head_terms(run, live, "the head and the loss", forward=True),
                *casts(run, head=True),
                term("activations", ANSWERED, step.answered),
            ]
        case name if name == LAST_NORM:
            return layers.in_the_last_norm(run)
        case "reference, forward":
            return scoring.reference(run)
        case "reference scored":
            return scoring.reference_alone(run)
        case "images encoded":
            return encoded(run)
        case "images encoded, with a graph":
            return encoded_with_graph(run)
        case "loss, backward":
            return [*kept(run, step.count), *below(run), *head_terms(run, step.head.loss, "the loss's backward")]
        case "head, backward":
            return [*kept(run, step.count), *below(run), *head_terms(run, step.head.head, "the head's backward")]
        case "end of backward":
            return [*inputs(run), *layers.embedding(run)]
        case "evaluation" | "evaluation, a layer":
            return scoring.evaluation(run, moment)
        case "weights handed to vLLM":
            return scoring.handed(run)
        case "generation":
            return scoring.generation(run) if run.spec.trainer != "ppo" else []
    if moment.name.endswith(", end of its backward"):
        return layers.layer_end(run)
    if moment.name.endswith(", checkpointed forward"):
        return layers.checkpointed(run)
    if moment.name.endswith(", forward"):
        return layers.passed(run, layers.index_of(moment))
    return layers.layer(run) if moment.name.startswith("layer ") else []
