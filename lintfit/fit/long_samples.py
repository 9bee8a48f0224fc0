"""Plans for runs that hang on samples of which nobody knows whether they are so long."""

from __future__ import annotations

from lintfit.findings.model import Applicability, Plan
from lintfit.frozen import replace
from lintfit.run.model import Run
from lintfit.verdict.capped import SAMPLE, fits_at_sample


def unasked(run: Run, plan: Plan | None) -> Plan | None:
    """The plan as it may be offered: unsafe where the run fits as it is with samples of most data's length, so that no
    file is rewritten for it unasked."""
    if plan is None or plan.applicability is not Applicability.SAFE or not fits_at_sample(run):
        return plan
    fix = replace(
        plan.fix, applicability=Applicability.UNSAFE, caution=f"it fits as it is with {SAMPLE:,} tokens a sample"
    )
    return replace(plan, applicability=Applicability.UNSAFE, fix=fix)
