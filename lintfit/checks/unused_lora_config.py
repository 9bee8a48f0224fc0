from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.wording import billions
from lintfit.documents.patterns import lazy_pattern
from lintfit.findings.model import Severity
from lintfit.run.model import Run

DECIDED_BY = ("method",)


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    made = run.script.facts.unused_peft_config if run.script is not None else None
    if run.script is None or made is None or made.taken is not True or run.value("method") != "full":
        return
    if not run.script.facts.trains:
        return
    count = f"all {billions(run.facts.parameters)} parameters" if run.facts is not None else "all parameters"
    if _left_out(run):
        return
    yield Report(
        made.place,
        f"{made.name} is handed to nothing: the run trains {count}, no adapters",
        severity=Severity.INFO if _SWITCHED_OFF.search(run.script.document.text) else None,
        help=_help(run),
    )


_SWITCHED_OFF = lazy_pattern(r"(?m)^[ \t]*#.*\b(?:get_peft_model\(|peft_config[ \t]*=)")
"""Code that wraps the model, or hands the config to the trainer, and is commented out: it is meant for now."""
_NONE = lazy_pattern(r"\bpeft_config\s*=\s*None\s*[,)]")


def _left_out(run: Run) -> bool:
    """Whether a call says itself that there are to be no adapters (``train(config, peft_config=None)``)."""
    text = run.script.document.text if run.script is not None else ""
    return any(not line.lstrip().startswith(("#", "def ")) for line in text.splitlines() if _NONE.search(line))


def _help(run: Run) -> str:
    assert run.script is not None
    trainer, made = run.script.facts.trainer, run.script.facts.unused_peft_config
    config = (made.assigned_to if made is not None else None) or "the config"
    if trainer is not None and trainer.function.startswith("trl."):
        return f"hand it to the trainer (peft_config={config}), or delete it"
    return f"wrap the model (model = get_peft_model(model, {config})), or delete it"
