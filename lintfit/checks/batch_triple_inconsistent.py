from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.batches import MICRO, STEPS, TOTAL, positive, triple
from lintfit.checks.helpers.context import FileContext, Report, RunContext
from lintfit.checks.helpers.readers import mismatch_stops, reader_of
from lintfit.checks.helpers.runs import by_machine
from lintfit.checks.helpers.trees import assigned, data_of, without
from lintfit.documents.model import DataDocument, Node
from lintfit.findings.model import Applicability, Fix, Related, Severity
from lintfit.run.model import Run
from lintfit.settings.model import Place
from lintfit.settings.registry import SPLITS

OF_HANDED_ON = True


def check_file(context: FileContext) -> Iterator[Report]:
    """Without a known world size: whether any number of GPUs makes the three agree."""
    found = data_of(context, "deepspeed")
    if found is None or any(_ranks(run) is not None for run in context.runs):
        return
    document, root = found
    sizes = triple(root)
    if sizes is None:
        yield from _pair(document, root)
        return
    total, micro, steps = sizes
    if total % (micro * steps):
        yield _report(
            document,
            root,
            f"{TOTAL} {total} is not a multiple of {micro} × {steps}: no number of GPUs makes "
            f"micro-batch × accumulation × GPUs come to {total}, and DeepSpeed stops with an AssertionError",
            context.runs,
        )


def _pair(document: DataDocument, root: Node) -> Iterator[Report]:
    """Two of the three, from which DeepSpeed works the third out by whole divisions, and then multiplies."""
    total = positive(root.get(TOTAL))
    for other, third in ((MICRO, STEPS), (STEPS, MICRO)):
        divisor, node = positive(root.get(other)), root.get(other)
        if total is None or divisor is None or node is None or root.entry(third) is not None or total % divisor == 0:
            continue
        yield Report(
            _place(document, root, TOTAL),
            f"{TOTAL} {total} is not a multiple of {other} {divisor}: DeepSpeed works {third} out by whole divisions, "
            "multiplies again and stops with an AssertionError",
            related=(Related(Place(document, node.span), "what it is divided by"),),
            help=f"write a multiple of {divisor}, or {third} in place of {TOTAL}",
        )


def _place(document: DataDocument, root: Node, name: str) -> Place:
    node = root.get(name)
    assert node is not None
    return Place(document, node.span)


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    ranks = _ranks(run)
    if run.deepspeed is None or ranks is None or run.deepspeed.document.root is None:
        return
    root = run.deepspeed.document.root
    sizes = triple(root)
    if sizes is None:
        return
    total, micro, steps = sizes
    if total != micro * steps * ranks:
        # On another number of GPUs than those of the machine it may come out even.
        open_count = by_machine(run) and total % (micro * steps) == 0
        stops, severity = _stops(run)
        assumed = " on all GPUs that there are" if by_machine(run) else ""
        yield _report(
            run.deepspeed.document,
            root,
            f"{TOTAL} {total} ≠ {micro} × {steps} × {ranks} = {micro * steps * ranks} "
            f"(micro-batch × accumulation × data-parallel ranks{assumed}): {stops}",
            (run,),
            Severity.WARNING if open_count else severity,
        )


def _stops(run: Run) -> tuple[str, Severity]:
    """Who compares first: transformers with its own arguments (``trainer_config_finalize``), or DeepSpeed."""
    if reader_of((run,)) == "transformers":
        return mismatch_stops(run)
    return "DeepSpeed stops with an AssertionError", Severity.ERROR


def _ranks(run: Run) -> int | None:
    """Data-parallel ranks, as far as the number of processes is stated; None where it is assumed.

    That a machine has so many GPUs does not say that a config that nothing launches is for all of them.
    """
    gpus = run.settings.get("gpus")
    if gpus is None or not gpus.known or gpus.provenance.kind == "assumed":
        return None
    if gpus.provenance.kind == "option" and run.launch is None:
        return None
    parallel = 1
    for name in SPLITS:
        parallel *= int(run.value(name, 1) or 1)
    return int(gpus.value) // parallel if int(gpus.value) % parallel == 0 else None


def _report(
    document: DataDocument, root: Node, message: str, runs: tuple[Run, ...], severity: Severity | None = None
) -> Report:
    total, micro, steps = (_place(document, root, name) for name in (TOTAL, MICRO, STEPS))
    return Report(
        total,
        message,
        severity=severity,
        related=(Related(micro, "the micro-batch"), Related(steps, "the accumulation")),
        fix=_fix(document, runs),
        help=f"delete {TOTAL}: DeepSpeed works it out from the other two",
    )


def _fix(document: DataDocument, runs: tuple[Run, ...]) -> Fix | None:
    match reader_of(runs):
        case None:
            return None
        case "deepspeed":
            return without(document, f"delete {TOTAL}: it follows from the other two", Applicability.SAFE, (TOTAL,))
    message = f'let {TOTAL} be "auto", which micro-batch, accumulation and ranks fill'
    return assigned(document, message, Applicability.SAFE, {(TOTAL,): "auto"})
