from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import related
from lintfit.checks.helpers.runs import arguments_of, at_length, change, evaluation_moment, fits, stated_at
from lintfit.checks.helpers.wording import gib, of_gib
from lintfit.findings.model import Applicability, Severity
from lintfit.fit.axes.evaluation import smaller
from lintfit.memory.result import Verdict
from lintfit.run.model import Run
from lintfit.verdict.capped import exact_length


def check_run(context: RunContext) -> Iterator[Report]:
    run, spec, estimate = context.run, context.run.spec, context.estimate
    if spec is None or spec.evaluation is None or estimate is None or estimate.capacity_bytes is None:
        return
    batch, now = spec.evaluation.batch_size, evaluation_moment(estimate)
    if context.verdict in (Verdict.FITS, Verdict.UNKNOWN) or batch <= spec.micro_batch_size or now is None:
        return
    if not estimate.peaks_in_evaluation or "micro_batch_size" in run.doubtful:
        return  # the batch of the training may be as large
    for size in smaller(run, spec):
        result = context.what_if(eval_batch_size=size)
        if result is None or not fits(result):
            continue
        yield Report(
            stated_at(run, "eval_batch_size") or arguments_of(run),
            f"evaluation runs with batch {batch}{_whose(run)}, training with {spec.micro_batch_size}: its logits take "
            f"{gib(now.components.get('logits', 0))}{at_length(context)}, the peak is "
            f"{of_gib(now.total, estimate.capacity_bytes)}; with {size} the run takes {gib(result.peak.likely)}",
            severity=_severity(context, now.total <= estimate.capacity_bytes),
            related=related(stated_at(run, "micro_batch_size"), "the training batch"),
            fix=change(run, f"evaluate with batch {size}", Applicability.SAFE, {"eval_batch_size": size}),
            help=f"{_said(run, size)}; training stays as it is",
        )
        return


def _severity(context: RunContext, likely_fits: bool) -> Severity:
    """Information where the run likely fits as it is: a smaller batch is then only more room; and where samples need
    not be as long as is reckoned, for a batch is padded to its longest. No error, as nobody sees whether there is
    anything to evaluate."""
    if not exact_length(context.run):
        return Severity.INFO
    return Severity.INFO if likely_fits and context.verdict is not Verdict.DOES_NOT_FIT else Severity.WARNING


def _said(run: Run, size: int) -> str:
    training = run.training
    stated = training.spelled("per_device_eval_batch_size", size) if training and training.uses_trainer else None
    return stated or f"the DataLoader's batch_size={size}"


def _whose(run: Run) -> str:
    """Whose default the batch is, where nobody states it."""
    setting = run.settings.get("eval_batch_size")
    stated = setting is None or setting.provenance.place is not None
    return "" if setting is None or stated else f" ({setting.provenance.detail})"
