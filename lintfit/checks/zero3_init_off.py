from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import offered
from lintfit.checks.helpers.readers import init_is_off
from lintfit.checks.helpers.runs import copies_outgrow_host, whole_copies
from lintfit.findings.model import Applicability, Severity
from lintfit.run.model import Run

_SEVERITY = {True: Severity.ERROR, False: Severity.INFO, None: Severity.INFO}
"""By whether the host has no room for whole copies; where it has, or nobody knows, they are no mistake."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.accelerate is None or run.value("engine") != "deepspeed" or run.value("zero_stage") != 3:
        return
    flag = run.accelerate.settings.get("zero3_init_flag")
    if flag is None or flag.value is not False or flag.provenance.place is None or _not_heard(run):
        return
    if not init_is_off(run):
        return
    edits = run.accelerate.write("zero3_init_flag", True)
    yield Report(
        flag.provenance.place,
        f"zero3_init_flag is false at ZeRO stage 3: accelerate before 1.0 does not partition the model while it loads, "
        f"and {whole_copies(run, ' in host memory')}",
        severity=_SEVERITY[copies_outgrow_host(run)],
        fix=offered("partition the model while it loads", Applicability.UNSAFE, edits),
        help="set it to true, or leave it out: true is the default at stage 3; accelerate 1.0 no longer heeds it",
    )


def _not_heard(run: Run) -> bool:
    """Whether something else decides: a flag of the launch line, the Trainer's own config, or nothing is loaded."""
    if run.launch is not None and "zero3_init_flag" in run.launch.invocation.options:
        return True
    if run.script is None:
        return False
    in_script = run.script.settings.get("deepspeed")
    own_config = in_script is not None and in_script.value not in (None, False, "")
    loads = run.script.facts.loads
    return own_config or (bool(loads) and all(load.name != "from_pretrained" for load in loads))
