"""The rule zero3-init-off: see its page."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.readers import init_is_off
from lintfit.checks.helpers.runs import copies, ranks_per_node
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.run.model import Run


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
        f"and {_cost(run)}",
        severity=_severity(run.spec, run),
        fix=Fix("partition the model while it loads", Applicability.UNSAFE, edits) if edits else None,
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


def _severity(spec: Spec | None, run: Run) -> Severity:
    """Whole copies break a run where the host has no room for them, and are waste where it has."""
    ranks = ranks_per_node(run)
    if spec is None or ranks is None or spec.host_memory_bytes is None:
        return Severity.WARNING
    return Severity.ERROR if ranks * _size(spec) > spec.host_memory_bytes else Severity.INFO


def _size(spec: Spec) -> int:
    return spec.facts.parameters * DTYPE_BYTES[spec.full_load_dtype or spec.weights_dtype]


def _cost(run: Run) -> str:
    if run.spec is None:
        return "every rank first holds a whole copy in host memory"
    return f"every rank first holds a whole copy in host memory ({copies(run, _size(run.spec))})"
