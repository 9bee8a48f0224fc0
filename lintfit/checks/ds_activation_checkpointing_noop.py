from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.readers import may_checkpoint_by_deepspeed
from lintfit.checks.helpers.trees import without
from lintfit.findings.model import Applicability, Severity
from lintfit.settings.model import Place

_BLOCK = "activation_checkpointing"


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or run.deepspeed is None or not run.script.facts.trains:
        return
    entry = run.deepspeed.entry(_BLOCK)
    if entry is None or entry.value.shape != "mapping" or may_checkpoint_by_deepspeed(run):
        return
    loads = run.script.facts.loads
    if not loads or not all(load.function.startswith("transformers.") for load in loads):
        return
    asked = any(each.value.plain() not in (False, None) for each in entry.value.entries)
    off = run.value("gradient_checkpointing") is False
    yield Report(
        Place(run.deepspeed.document, entry.key_span),
        f'"{_BLOCK}" does nothing for a model of transformers, which never calls DeepSpeed\'s checkpointing'
        + ("; gradient checkpointing is off in this run" if off else ""),
        severity=Severity.WARNING if asked and off else Severity.INFO,
        fix=without(run.deepspeed.document, "delete the block", Applicability.SAFE, (_BLOCK,)),
        help="pass gradient_checkpointing=True to the trainer's arguments" if off else "delete it",
    )
