from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import fits, most, names_unread_file, stated_at, up_to
from lintfit.checks.helpers.wording import rough
from lintfit.findings.model import Severity
from lintfit.memory.result import Estimate, Verdict
from lintfit.verdict.capped import exact_length

_SHORTEST = 256
"""Tokens below which a shorter sequence is no answer any more."""
_STEP = 128


def check_run(context: RunContext) -> Iterator[Report]:
    run, spec, estimate = context.run, context.run.spec, context.estimate
    place = stated_at(run, "seq_len")
    if spec is None or estimate is None or place is None or context.verdict_of_training is not Verdict.DOES_NOT_FIT:
        return
    if spec.micro_batch_size > 1 and fits(context.what_if(micro_batch_size=1)):
        return
    if not {"micro_batch_size", "seq_len"}.isdisjoint(context.run.doubtful):
        return  # what is counted is the least that they may be
    length = _longest(context, spec.seq_len)
    if length is None:
        return
    shorter = context.what_if(seq_len=length)
    assert shorter is not None
    # A plan may make the run fit that leaves the sequences alone.
    as_long = context.plan is not None and all(step.setting != "seq_len" for step in context.plan.steps)
    yield Report(
        place,
        f"samples of {spec.seq_len:,} tokens take {up_to(context)}{rough(most(estimate, 'activations', 'logits'))} of "
        f"activations and logits{_room(context, length, shorter)}",
        severity=Severity.WARNING if exact_length(run) and not as_long else Severity.INFO,
        help=f"cut or split samples at {length:,} tokens; that changes what the model sees",
    )


def _room(context: RunContext, length: int, shorter: Estimate) -> str:
    """How long samples may be, where all else that takes memory is known."""
    if names_unread_file(context.run) or context.run.doubtful or shorter.not_modelled:
        return ""
    return f"; about {length:,} fit ({rough(most(shorter, 'activations', 'logits'))})"


def _longest(context: RunContext, length: int) -> int | None:
    """The longest sequence that fits, in whole steps; None where no useful one does."""
    low, high = _SHORTEST // _STEP, (length - 1) // _STEP
    if high < low or not fits(context.what_if(seq_len=low * _STEP)):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        if fits(context.what_if(seq_len=middle * _STEP)):
            low = middle
        else:
            high = middle - 1
    return low * _STEP
