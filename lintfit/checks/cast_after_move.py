from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import change
from lintfit.checks.helpers.wording import gib
from lintfit.checks.helpers.zero3_loads import loads_in_parts
from lintfit.documents.patterns import lazy_pattern
from lintfit.findings.model import Applicability, Related, Severity
from lintfit.run.model import Run
from lintfit.sources.script.model import Call

_BILLIONS = lazy_pattern(r"(?<![A-Za-z\d])\d+(?:[._]\d+)?[Bb](?![A-Za-z\d])")
"""A size in billions of parameters within a model's name."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or not run.script.facts.trains or not _loaded_in_fp32(run):
        return
    if loads_in_parts(run) or (run.spec is not None and run.spec.made_in_parts):
        return
    facts = run.script.facts
    moves = [move.call for move in facts.moves if move.call.taken is True and not move.call.device_guarded]
    for downcast in facts.downcasts:
        cast = downcast.call
        before = [move for move in moves if move.order < cast.order]
        if cast.taken is not True or cast.device_guarded or not before:
            continue
        yield _report(context, cast, before[0])
        return


def _report(context: RunContext, cast: Call, move: Call) -> Report:
    run = context.run
    size = f"{gib(4 * run.facts.parameters)}" if run.facts is not None else "4 bytes per parameter"
    return Report(
        move.place,
        f"the model goes to the GPU in fp32 and is cast to 16 bits there: loading takes {size} of the GPU, "
        "twice what the cast leaves",
        severity=_severity(context),
        related=(Related(cast.place, "the cast"),),
        fix=change(
            run, "load the model in that dtype", Applicability.SAFE, {"weights_dtype": run.value("weights_dtype")}
        )
        if run.settings["weights_dtype"].value in ("bf16", "fp16")
        else None,
        help="cast before the move, or pass the dtype to from_pretrained",
    )


def _loaded_in_fp32(run: Run) -> bool:
    """Whether the weights are certainly fp32 before the cast."""
    weights = run.settings.get("weights_dtype")
    return (
        weights is not None
        and weights.value in ("bf16", "fp16")
        and any(beaten.value == "fp32" for beaten in weights.overrode)
    )


def _severity(context: RunContext) -> Severity:
    """It breaks the run where the GPU cannot hold the copy, and is harmless where training needs more anyway."""
    estimate, facts = context.estimate, context.run.facts
    if facts is None and not _BILLIONS.search(str(context.run.value("model") or "")):
        return Severity.INFO  # a model of unknown size, which may well be a small one of the project's own
    if estimate is None or facts is None or estimate.capacity_bytes is None:
        return Severity.WARNING
    copy = 4 * facts.parameters
    if copy > estimate.capacity_bytes:
        return Severity.ERROR
    return Severity.WARNING if copy > estimate.peak.likely else Severity.INFO
