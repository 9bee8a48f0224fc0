from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.checkpointing import KEYWORDS, keywords_of, reentrant_of
from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import offered
from lintfit.checks.helpers.readers import milder, older
from lintfit.checks.helpers.script_calls import calls_of, on_trained_model
from lintfit.findings.model import Applicability, Fix, Related, Severity
from lintfit.run.model import Run
from lintfit.sources.script.model import Argument
from lintfit.sources.script.source import ScriptSource


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or run.script.facts.trainer is None or run.script.uses_trl:
        return
    arguments = run.script.facts.training_arguments
    if arguments is None or arguments.spreads:
        return
    if any(name in arguments.arguments and arguments.arguments[name].value is not None for name in KEYWORDS):
        return
    flag = arguments.argument("activation_checkpointing", "gradient_checkpointing")
    if flag is None or flag.value is not True:
        return
    for call in calls_of(run.script, "gradient_checkpointing_enable", "activation_checkpointing_enable"):
        stated = keywords_of(call)
        wanted = reentrant_of(stated)
        if call.taken is True and stated is not None and wanted is not None and on_trained_model(run.script, call):
            severity = _severity(run, wanted)
            if severity is not None:
                yield _report(run.script, stated, flag, wanted, severity)


def _severity(run: Run, wanted: bool) -> Severity | None:
    """The Trainer enables it again with its own default: reentrant before transformers 5, not reentrant since."""
    old = older((run,), "transformers", "5")
    if old is None:
        return milder(Severity.WARNING)
    return Severity.WARNING if wanted is not old else None


def _report(script: ScriptSource, stated: Argument, flag: Argument, wanted: bool, severity: Severity) -> Report:
    return Report(
        stated.whole,
        f"use_reentrant={wanted} is lost: gradient_checkpointing=True makes the Trainer enable checkpointing again "
        f"when training starts, with its own default (use_reentrant={'True before' if not wanted else 'False since'} "
        "transformers 5)",
        severity=severity,
        related=(Related(flag.place, "the Trainer is asked for it here"),),
        fix=_fix(script, wanted),
        help=f'pass gradient_checkpointing_kwargs={{"use_reentrant": {wanted}}} to the arguments',
    )


def _fix(script: ScriptSource, wanted: bool) -> Fix | None:
    arguments = script.facts.training_arguments
    if script.facts.parse_call is not None or arguments is None:
        return None
    edits = script.set_argument(arguments, KEYWORDS[0], f'{{"use_reentrant": {wanted}}}')
    return offered("hand the keywords to the Trainer", Applicability.SAFE, edits)
