from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import at_length, change, fits, likely_fits, most, of_samples, place_of, up_to
from lintfit.checks.helpers.wording import rough
from lintfit.findings.model import Applicability, Severity
from lintfit.fit.divisors import divisors
from lintfit.memory.result import Estimate, Verdict
from lintfit.run.generation import fills_groups


def check_run(context: RunContext) -> Iterator[Report]:
    run, spec, estimate = context.run, context.run.spec, context.estimate
    if spec is None or estimate is None or spec.micro_batch_size == 1:
        return
    if context.verdict in (Verdict.FITS, Verdict.UNKNOWN) or context.severity() is Severity.INFO:
        return
    micro, steps = spec.micro_batch_size, spec.gradient_accumulation_steps
    for smaller in divisors(micro)[1:]:
        changes = {"micro_batch_size": smaller, "gradient_accumulation_steps": steps * micro // smaller}
        result = context.what_if(**changes)
        if result is None or not fits(result) or not fills_groups(run, smaller, spec.data_parallel):
            continue
        now = most(estimate, "activations", "logits")
        samples = "the" if run.count_open else micro * steps * spec.data_parallel
        yield Report(
            place_of(run, "micro_batch_size"),
            f"micro-batch {micro} takes {up_to(context)}{rough(now)} of activations and logits{at_length(context)}; "
            f"{smaller} with accumulation {changes['gradient_accumulation_steps']} takes "
            f"{rough(most(result, 'activations', 'logits'))}, "
            f"fits, and keeps {samples} samples per step",
            severity=_severity(context, result),
            fix=change(
                run,
                f"micro-batch {smaller} with accumulation {changes['gradient_accumulation_steps']}",
                Applicability.SAFE,
                changes,
            ),
        )
        return


def _severity(context: RunContext, smaller: Estimate) -> Severity:
    spec = context.run.spec
    stated = spec is not None and "seq_len" in spec.stated
    return of_samples(context, smaller) if stated and not likely_fits(context) else Severity.INFO
