"""The rule gradients-beside-forward: see its page."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.context import Report, RunContext
from lintfit.checks.runs import breaks_or_strains, change, stated_at
from lintfit.checks.wording import gib
from lintfit.findings import Applicability

_SOONER = {"zero_grad": "step"}

_SHARE = 0.02
"""Share of the card from which on what is held is worth a word."""

_WHERE = {
    "forward": "zero_grad in front of the next forward pass leaves the gradients beside the evaluation",
    "backward": "zero_grad behind the forward pass leaves the last step's gradients beside it",
    "never": "zero_grad fills the gradients with zeros, which are there in every forward pass",
}


def check_run(context: RunContext) -> Iterator[Report]:
    run, spec, estimate = context.run, context.run.spec, context.estimate
    place = stated_at(run, "zero_grad")
    if spec is None or estimate is None or place is None or spec.zero_grad == "step":
        return
    after = context.what_if(**_SOONER)
    if breaks_or_strains(context) is None or after is None or estimate.capacity_bytes is None:
        return
    saved = estimate.peak.likely - after.peak.likely
    if saved <= _SHARE * estimate.capacity_bytes:
        return
    yield Report(
        place,
        f"{_WHERE[spec.zero_grad]}: {gib(saved)} at the peak",
        fix=change(run, "let go of the gradients behind the optimizer's step", Applicability.SAFE, _SOONER),
        help="call zero_grad() behind the optimizer's step; torch 2 then sets the gradients to None",
    )
