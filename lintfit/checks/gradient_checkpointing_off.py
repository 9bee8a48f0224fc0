from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import (
    arguments_of,
    at_length,
    breaks_or_strains,
    enough,
    likely_fits,
    most,
    of_cause,
    stated_at,
    up_to,
)
from lintfit.checks.helpers.wording import rough
from lintfit.findings.model import Applicability, Severity

_WORTH_IT = 0.05
"""Share of the GPU that checkpointing must give back to be mentioned."""

_OF_PEAK = 0.1
"""And share of the peak: what is small beside the rest is no cause."""


def check_run(context: RunContext) -> Iterator[Report]:
    run, spec, estimate = context.run, context.run.spec, context.estimate
    if run.training is None or spec is None or estimate is None or not run.training.trains:
        return
    said = run.training.spelled("gradient_checkpointing", True)
    if said is None:
        return
    if spec.gradient_checkpointing or "gradient_checkpointing" in run.doubtful:
        return
    flag = run.launch.flag("gradient_checkpointing") if run.launch is not None else None
    if flag is not None and flag.is_on:
        return  # whoever wrote that has another mistake: the script does not take the flag
    if run.script is not None and run.script.calls("gradient_checkpointing_disable"):
        return  # it is meant
    checkpointed = context.what_if(gradient_checkpointing=True)
    if breaks_or_strains(context) is None or checkpointed is None or estimate.capacity_bytes is None:
        return
    now, then = most(estimate, "activations"), most(checkpointed, "activations")
    if now - then < max(_WORTH_IT * estimate.capacity_bytes, _OF_PEAK * estimate.peak.likely):
        return
    assumed = "seq_len" not in spec.stated  # of activations nobody knows then how large they are
    yield Report(
        stated_at(run, "gradient_checkpointing") or arguments_of(run),
        f"gradient checkpointing is off: activations take {up_to(context)}{rough(now)}{at_length(context)}, with it "
        f"{rough(then)}, "
        "for a second forward pass in every step",
        severity=Severity.INFO if assumed or likely_fits(context) else of_cause(context, checkpointed),
        fix=enough(context, "turn gradient checkpointing on", Applicability.SAFE, {"gradient_checkpointing": True}),
        help=f"pass {said} to the trainer's arguments" if run.recipe is None else f"pass {said}",
    )
