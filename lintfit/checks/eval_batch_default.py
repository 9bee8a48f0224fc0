"""The rule eval-batch-default: see its page."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.context import Report, RunContext
from lintfit.checks.runs import arguments_of, most
from lintfit.checks.wording import gib, of_gib
from lintfit.findings import Applicability, Fix, Related
from lintfit.memory.result import Estimate, Verdict
from lintfit.run.model import Run
from lintfit.settings import Setting

_NAME = "per_device_eval_batch_size"


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    spec, estimate = run.spec, context.estimate
    if spec is None or estimate is None or estimate.capacity_bytes is None or context.verdict is Verdict.UNKNOWN:
        return
    batch = _evaluates_with(run)
    if batch is None or batch.value <= spec.micro_batch_size:
        return
    trial = context.what_if(micro_batch_size=batch.value)
    now = _evaluation(trial) if trial is not None else 0
    if now <= estimate.capacity_bytes or _evaluation(estimate) > estimate.capacity_bytes:
        return
    assert trial is not None
    stated = batch.provenance.kind == "file"
    whose = "" if stated else f" ({batch.provenance.detail})"
    place = batch.provenance.place if stated else None
    yield Report(
        place or arguments_of(run),
        f"evaluation runs with batch {batch.value}{whose}, training with {spec.micro_batch_size}: "
        f"its logits take {gib(_logits(trial))}, the peak is {of_gib(now, estimate.capacity_bytes)}",
        related=_micro(run),
        fix=_fix(run, spec.micro_batch_size),
        help=f"{_NAME}={spec.micro_batch_size}",
    )


def _evaluates_with(run: Run) -> Setting | None:
    """The batch that the Trainer evaluates with; None where it does not evaluate, or where that is not known."""
    if run.script is None or run.script.facts.trainer is None:
        return None
    data = run.script.facts.trainer.argument("eval_dataset")
    when = run.script.argument("eval_strategy", "evaluation_strategy")
    generates = run.script.argument("predict_with_generate")
    if data is None or data.value is None or when is None or when.value not in ("steps", "epoch"):
        return None
    batch = run.script.argument(_NAME)
    if batch is None or not isinstance(batch.value, int) or (generates is not None and generates.value is not False):
        return None
    return batch


def _evaluation(estimate: Estimate) -> int:
    return max((moment.total for moment in estimate.moments if moment.phase == "evaluate"), default=0)


def _logits(estimate: Estimate) -> int:
    sizes = (moment.components.get("logits", 0) for moment in estimate.moments if moment.phase == "evaluate")
    return max(sizes, default=most(estimate, "logits"))


def _micro(run: Run) -> tuple[Related, ...]:
    setting = run.settings.get("micro_batch_size")
    place = setting.provenance.place if setting is not None else None
    return (Related(place, "the training batch"),) if place is not None else ()


def _fix(run: Run, batch: int) -> Fix | None:
    assert run.script is not None
    edits = run.script.write_argument(_NAME, batch)
    return Fix(f"evaluate with batch {batch}, as in training", Applicability.SAFE, edits) if edits else None
