"""Where the bytes of an estimate come from: every component as a sum of products with the numbers in them.

The terms are worked out a second time from the same sizes as the estimate, moment by moment, and settled against it:
what they do not account for is a term of its own, so that they always add up to the component.
"""

from __future__ import annotations

from lintfit.frozen import frozen, replace
from lintfit.memory.engines.model_states import states
from lintfit.memory.engines.states import States
from lintfit.memory.engines.zero_config import zero_config
from lintfit.memory.explain import beside, ppo, running, unsharded
from lintfit.memory.explain.passing import micro_batch
from lintfit.memory.explain.term import OTHER, ROUNDING, Term, nearest, settled, term
from lintfit.memory.result import COMPONENTS, Components, Estimate, Moment
from lintfit.memory.spec import Spec

__all__ = ["OTHER", "ROUNDING", "Explained", "Term", "at", "elsewhere", "explain", "host"]

_STATES = {
    "model loaded": "load",
    "engine initialized": "initialize",
    "checkpoint loaded": "resume",
    "loss, backward": "backward_start",
    "head, backward": "first_gradient",
    "end of backward": "backward_end",
    "optimizer step": "step",
    "evaluation": "evaluate",
    "evaluation, a layer": "evaluate",
    "evaluation, images encoded": "evaluate",
    "evaluation, logits": "evaluate",
    "evaluation, logits gathered": "evaluate",
    "evaluation, generation": "evaluate",
    "evaluation, prompts read": "evaluate",
    "evaluation, tokens generated": "evaluate",
    "evaluation, with its graph": "forward",
    "generation": "evaluate",
    "weights handed to vLLM": "evaluate",
    "reference scored": "evaluate",
    "checkpoint saved": "save",
    **dict.fromkeys(ppo.ROUNDS, "evaluate"),
    "statistics": "forward",
    "images encoded": "forward",
    "images encoded, with a graph": "forward",
}
"""Which of the states' moments stands behind each moment of a step; in a forward it is ``forward``, inside a layer's
backward ``first_gradient``, at the end of one ``layer_end``."""


@frozen
class Explained:
    """One component at one moment: the terms add up to ``size`` bytes."""

    moment: Moment
    component: str
    terms: tuple[Term, ...]

    @property
    def size(self) -> int:
        return sum(item.size for item in self.terms)


def explain(spec: Spec, estimate: Estimate) -> tuple[Explained, ...]:
    """Every component at the peak, then those that are larger, or there at all, at another moment: at their largest."""
    return (*at(spec, estimate, estimate.peak_moment), *elsewhere(spec, estimate))


def at(spec: Spec, estimate: Estimate, moment: Moment) -> tuple[Explained, ...]:
    """Every component that has bytes at a moment."""
    spec = _counted(spec, estimate)
    held = states(spec)
    run = micro_batch(spec, held)
    found = [
        *_of_states(spec, held, moment),
        term("parameters", "buffers of all positions", run.step.buffers),
        *running.terms(run, moment),
        *beside.reference_terms(spec, moment),
        *beside.framework_terms(spec, estimate, held),
    ]
    return tuple(
        Explained(moment, name, tuple(settled(name, found, moment.components[name])))
        for name in COMPONENTS
        if moment.components.get(name)
    )


def elsewhere(spec: Spec, estimate: Estimate) -> tuple[Explained, ...]:
    """Components that are larger at another moment than at the peak, each where it is largest."""
    peak = estimate.peak_moment
    found = []
    for name in COMPONENTS:
        largest = max(estimate.moments, key=lambda moment: moment.components.get(name, 0))
        if largest.components.get(name, 0) > peak.components.get(name, 0):
            found += [part for part in at(spec, estimate, largest) if part.component == name]
    return tuple(found)


def host(spec: Spec, estimate: Estimate) -> tuple[Term, ...]:
    """The host memory of one node; the terms add up to ``estimate.host.peak``."""
    spec = _counted(spec, estimate)
    return tuple(settled("host", beside.host_terms(spec, estimate, states(spec)), estimate.host.peak))


def _counted(spec: Spec, estimate: Estimate) -> Spec:
    """The run as the estimate has it: of a pipeline the stage that needs most."""
    return spec if estimate.stage == spec.pipeline_stage else replace(spec, pipeline_stage=estimate.stage)


def _of_states(spec: Spec, held: States, moment: Moment) -> list[Term]:
    state = _STATES.get(moment.name, "first_gradient")
    if moment.name.endswith(", end of its backward"):
        state = "layer_end"
    elif moment.name.endswith((", forward", ", checkpointed forward")):
        state = "forward"
    sizes: Components = getattr(held, state) or {}
    if state == "resume":
        lasting = nearest(_ways(spec, "forward"), dict(sizes))
        what = "states of the checkpoint beside those that they replace"
        copies = term(
            "temporaries", what, sizes.get("temporaries", 0), source="torch optim/optimizer.py load_state_dict"
        )
        return [*[each for each in lasting if each.component != "temporaries"], copies]
    return nearest(_ways(spec, state), dict(sizes))


def _ways(spec: Spec, state: str) -> list[list[Term]]:
    """The ways in which the states at a moment may come about; the estimate took the largest."""
    if spec.engine == "fsdp":
        from lintfit.memory.explain import fsdp

        return [fsdp.terms(spec, state)]
    if spec.engine != "deepspeed":
        return [unsharded.terms(spec, state)]
    config = zero_config(spec)
    match config.stage:
        case 0 | 1 | 2:
            from lintfit.memory.engines.zero12 import bf16_optimizer
            from lintfit.memory.explain import zero12

            alone = config.stage == 0 and not bf16_optimizer(spec, config)
            return zero12.stage_0(spec, state) if alone else zero12.stages_1_2(spec, state)
        case _:
            from lintfit.memory.explain import zero3

            return zero3.terms(spec, state)
