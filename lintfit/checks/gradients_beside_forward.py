from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import change, fits, likely_fits, spared, stated_at
from lintfit.checks.helpers.wording import gib
from lintfit.findings.model import Applicability, Severity

_SOONER = {"zero_grad": "step"}

_WORTH_IT = 0.05
"""Share of the GPU below which it is information, unless a run that likely runs out of memory fits without."""

_WHERE = {
    "forward": "zero_grad in front of the next forward pass leaves the gradients beside the evaluation",
    "backward": "zero_grad behind the forward pass leaves the last step's gradients beside it",
    "never": "zero_grad fills the gradients with zeros, which are there in every forward pass",
}


def check_run(context: RunContext) -> Iterator[Report]:
    run, spec, place = context.run, context.run.spec, stated_at(context.run, "zero_grad")
    if spec is None or place is None or spec.zero_grad == "step":
        return
    saved = spared(context, _SOONER)
    estimate = context.estimate
    if not saved or estimate is None or estimate.capacity_bytes is None:
        return
    decides = not likely_fits(context) and fits(context.what_if(**_SOONER))
    small = saved < _WORTH_IT * estimate.capacity_bytes and not decides
    yield Report(
        place,
        f"{_WHERE[spec.zero_grad]}: {gib(saved)} at the peak",
        severity=Severity.INFO if small else None,
        fix=change(run, "free the gradients behind the optimizer's step", Applicability.SAFE, _SOONER),
        help="call zero_grad() behind the optimizer's step; torch 2 then sets the gradients to None",
    )
