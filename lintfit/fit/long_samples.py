"""Plans for runs that hang on samples of which nobody knows whether they are so long."""

from __future__ import annotations

from lintfit.findings.model import Applicability, Plan
from lintfit.frozen import replace
from lintfit.run.model import Run
from lintfit.verdict.capped import fits_at


def unasked(run: Run, plan: Plan | None) -> Plan | None:
    """The plan as it may be offered: unsafe where the run fits as it is with samples that are shorter, so that no file
    is rewritten for it unasked."""
    if plan is None or plan.applicability is not Applicability.SAFE or (tokens := fits_at(run)) is None:
        return plan
    caution = f"it fits as it is with {tokens:,} tokens a sample"
    fix = replace(plan.fix, applicability=Applicability.UNSAFE, caution=caution)
    return replace(plan, applicability=Applicability.UNSAFE, fix=fix)
