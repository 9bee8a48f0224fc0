from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.readers import reader_of
from lintfit.checks.helpers.trees import without
from lintfit.findings.model import Applicability, Related
from lintfit.settings.model import Place
from lintfit.sources.deepspeed import DeepSpeedSource
from lintfit.sources.script.model import Argument, Call

_OPTIMIZERS = ("torch.optim.", "bitsandbytes.optim.", "deepspeed.ops.", "apex.optimizers.")
_SCHEDULERS = ("torch.optim.lr_scheduler.", "transformers.get_")


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.deepspeed is None or run.script is None or reader_of((run,)) != "accelerate":
        return
    for call in run.script.calls("prepare"):
        if call.taken is not True or "accelerator" not in (call.receiver or "").lower():
            continue
        for argument in call.positional:
            kind = _kind(argument)
            place = run.deepspeed.place(kind) if kind is not None else None
            if kind is not None and place is not None:
                yield _report(run.deepspeed, kind, place, argument)


def _kind(argument: Argument) -> str | None:
    """What an argument of ``prepare`` is, where that is certain: a library's optimizer or scheduler."""
    made = argument.value
    if not isinstance(made, Call) or made.taken is not True:
        return None
    if made.function.startswith(_SCHEDULERS):
        return "scheduler"
    return "optimizer" if made.function.startswith(_OPTIMIZERS) else None


def _report(source: DeepSpeedSource, kind: str, place: Place, argument: Argument) -> Report:
    dummy = "DummyOptim" if kind == "optimizer" else "DummyScheduler"
    return Report(
        argument.place,
        f"{argument.value.name} is prepared and {source.document.path.name} has {kind} settings, too: "
        f"accelerate stops with ValueError (You cannot specify {'an' if kind == 'optimizer' else 'a'} {kind} in the "
        "config file and in the code at the same time)",
        related=(Related(place, "the block in the DeepSpeed config"),),
        fix=without(
            source.document, f"delete the {kind} block: the code's has the numbers", Applicability.SAFE, (kind,)
        ),
        help=f"delete the block, or prepare accelerate.utils.{dummy}",
    )
