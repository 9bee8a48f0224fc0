"""The rule zero3-config-after-load: see its page."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import copies, ranks_per_node, trap
from lintfit.checks.helpers.script_edits import moved_above
from lintfit.findings.model import Applicability, Fix, Related, Severity
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.run.model import Run
from lintfit.sources.script.model import Call, ScriptFacts


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or run.value("engine") != "deepspeed" or run.value("zero_stage") != 3:
        return
    facts = run.script.facts
    config = _config(facts)
    load = _load(facts)
    if config is None or load is None or load.order > config.order:
        return
    if any(call.order < load.order for call in facts.partitioning):
        return
    yield Report(
        load.place,
        f"the model is loaded before {config.name} exists: ZeRO-3 cannot partition it while it loads, and {_cost(run)}",
        severity=_severity(context),
        related=(Related(config.place, "from here on a load is partitioned"),),
        fix=_fix(run, config, load),
        help=f"build {config.name} before the model is loaded",
    )


def _severity(context: RunContext) -> Severity:
    """Whole copies break a run where the host has no room for them; else they are a waste of it."""
    spec = context.run.spec
    ranks = ranks_per_node(context.run)
    if spec is None or ranks is None or spec.host_memory_bytes is None:
        return max(trap(context), Severity.WARNING)
    return Severity.ERROR if ranks * _size(spec) > spec.host_memory_bytes else trap(context)


def _size(spec: Spec) -> int:
    return spec.facts.parameters * DTYPE_BYTES[spec.full_load_dtype or spec.weights_dtype]


def _fix(run: Run, config: Call, load: Call) -> Fix | None:
    edits = moved_above(run.script, config, load) if run.script is not None else None
    if edits is None:
        return None
    return Fix(f"build {config.name} before the load", Applicability.SAFE, edits, {"zero3_init": True})


def _config(facts: ScriptFacts) -> Call | None:
    """What makes the DeepSpeed config known to ``from_pretrained``, the earliest of its kind."""
    calls = [call for call in (facts.training_arguments, facts.parse_call, facts.accelerator) if call is not None]
    return min(calls, key=lambda call: call.order, default=None)


def _load(facts: ScriptFacts) -> Call | None:
    loads = [load for load in facts.loads if load.taken is True]
    trained = [load for load in loads if facts.trained_model is None or load.assigned_to == facts.trained_model]
    candidates = trained or (loads if len(loads) == 1 else [])
    return candidates[0] if candidates else None


def _cost(run: Run) -> str:
    spec = run.spec
    if spec is None:
        return "every rank first holds a whole copy"
    return f"every rank first holds a whole copy ({copies(run, _size(spec))})"
