"""Terms of what a variable of the script's own loop holds (:mod:`lintfit.memory.micro_batch.loop_outputs`)."""

from __future__ import annotations

from lintfit.memory.activations.form import Live
from lintfit.memory.evaluation.batch import batch
from lintfit.memory.evaluation.points import left_of_training
from lintfit.memory.explain.passing import Pass
from lintfit.memory.explain.term import Term, term
from lintfit.memory.result import Moment

HOLDER = "which the loop's variable holds"


def terms(run: Pass, moment: Moment) -> list[Term]:
    """Logits, keys and values that are there at a moment because the model's outputs have a name."""
    step, held = run.step, run.spec.loop_outputs == "held"
    if moment.phase == "forward":
        last = Live(step.earlier.activations - step.outputs.activations, step.earlier.logits)
        return _of(last, "of the last micro-batch, ") if held else []
    if moment.in_evaluation:
        one = batch(run.spec, run.states, step)
        left = step.results() if one is None else left_of_training(run.spec, step, one)
        return _of(left, "of the training, ") if held else []
    if moment.name in ("end of backward", "optimizer step"):
        return _of(step.results(), "")
    return _of(step.outputs, "") if moment.phase == "backward" else []


def _of(live: Live, of: str) -> list[Term]:
    return [
        term("activations", f"keys and values {of}{HOLDER}", live.activations),
        term("logits", f"logits {of}{HOLDER}", live.logits),
    ]
