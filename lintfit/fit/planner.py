"""The planner: the cheapest set of changes that turns ``does-not-fit`` into ``fits``, and what was not enough.

All combinations of the space are estimated; among those that fit, the best by safety, step time and number of changes
is carried out in memory, read again and estimated again. A plan that does not then fit is not offered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lintfit.config import Options
from lintfit.documents.workspace import Workspace
from lintfit.findings import Applicability, FileEdit, Fix, Plan, Rejected, Step
from lintfit.fit.carry import Carried, carry_out
from lintfit.fit.shortfall import shortfall, suffices
from lintfit.fit.space import LADDER, Candidate, candidates
from lintfit.fit.speed import relative_step_time
from lintfit.memory import estimate
from lintfit.memory.result import Estimate, Verdict
from lintfit.memory.spec import Spec
from lintfit.run.change import changed_spec
from lintfit.run.model import Run

_ATTEMPTS = 6
"""How many of the best candidates are carried out before one that can only be shown is taken."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A plan, or None with what is missing; either way the candidates that were tried and do not suffice."""

    plan: Plan | None
    rejected: tuple[Rejected, ...] = ()
    shortfall: str = ""


@dataclass(frozen=True, slots=True)
class _Fitting:
    candidate: Candidate
    spec: Spec
    estimate: Estimate
    step_time: float


def plan(run: Run, workspace: Workspace, cli: Options) -> Outcome:
    """What would make the run fit. The run must have a spec whose estimate does not fit."""
    assert run.spec is not None
    shown: Plan | None = None
    for attempt, found in enumerate(_fitting(run, run.spec)):
        confirmed = _confirmed(run, found, workspace, cli)
        if confirmed is not None:
            return Outcome(confirmed, confirmed.rejected)
        shown = shown or _displayed(run, found)
        if attempt + 1 == _ATTEMPTS:
            break
    if shown is not None:
        return Outcome(shown, shown.rejected)
    return Outcome(None, _ladder_rejected(run, {}), shortfall(run, run.spec))


def _fitting(run: Run, spec: Spec) -> Iterator[_Fitting]:
    """The candidates that fit, best first. Estimates are made only as far as they are asked for."""
    ranked = sorted(
        ((candidate, changed_spec(spec, candidate.changes)) for candidate in candidates(run)),
        key=lambda pair: _rank(spec, *pair),
    )
    for candidate, changed in ranked:
        result = estimate(changed)
        if suffices(result):
            yield _Fitting(candidate, changed, result, relative_step_time(spec, changed))


def _rank(spec: Spec, candidate: Candidate, changed: Spec) -> tuple[int, bool, int, float, int]:
    """Safety first, then what does not rest on an unknown host, what keeps the sequences, step time, few changes."""
    host_unknown = changed.host_memory_bytes is None and changed.offload_optimizer != "none"
    applicability = list(Applicability).index(candidate.applicability)
    cut = spec.seq_len - changed.seq_len
    return applicability, host_unknown, cut, relative_step_time(spec, changed), len(candidate.made)


def _confirmed(run: Run, found: _Fitting, workspace: Workspace, cli: Options) -> Plan | None:
    """The plan carried out in memory, read again and estimated again; None where it does not come out as said."""
    assert run.spec is not None
    carried = carry_out(run, found.candidate.changes, workspace, cli)
    if carried is None or carried.run.spec is None or carried.run.doubtful:
        return None
    result = estimate(carried.run.spec)
    same_batch = _effective_batch(carried.run.spec) == _effective_batch(run.spec)
    if not suffices(result) or not same_batch:
        return None
    applicability = found.candidate.applicability
    steps = tuple(_steps(run, found, carried))
    message = "; ".join(_describe(step) for step in steps)
    fix = Fix(message, applicability, carried.edits, dict(found.candidate.changes))
    rejected = _ladder_rejected(run, found.candidate.changes)
    beyond = _beyond(run.spec, found.candidate.changes)
    step_time = relative_step_time(run.spec, carried.run.spec)
    return Plan(applicability, steps, result, step_time, fix, rejected, beyond)


def _displayed(run: Run, found: _Fitting) -> Plan:
    """A plan that fits but that lintfit cannot write into these files."""
    assert run.spec is not None
    steps = tuple(_steps(run, found, None))
    message = "; ".join(_describe(step) for step in steps)
    fix = Fix(message, Applicability.DISPLAY, (), dict(found.candidate.changes))
    rejected = _ladder_rejected(run, found.candidate.changes)
    return Plan(Applicability.DISPLAY, steps, found.estimate, found.step_time, fix, rejected)


def _effective_batch(spec: Spec) -> int:
    return spec.micro_batch_size * spec.gradient_accumulation_steps * spec.data_parallel


def _steps(run: Run, found: _Fitting, carried: Carried | None) -> Iterator[Step]:
    assert run.spec is not None
    places = carried.places if carried is not None else {}
    edits = carried.edits if carried is not None else ()
    for name, after in found.candidate.changes.items():
        before = getattr(run.spec, name, after)
        if name == "full_load_dtype" or before == after:
            continue
        via = "forced_float32" if name == "weights_dtype" and "forced_float32" in places else name
        in_config = name in ("engine", "zero_stage", "offload_optimizer", "offload_param")
        home = run.recipe.document.path if run.recipe is not None else run.origin.path
        path = places.get(via) or (places.get("deepspeed") if in_config else None) or home
        yield Step(name, before, after, path, _edits_of(edits, path))


def _edits_of(edits: Sequence[FileEdit], path: Any) -> tuple[FileEdit, ...]:
    return tuple(edit for edit in edits if edit.path == path)


def _describe(step: Step) -> str:
    return f"{step.setting}: {_shown(step.before)} → {_shown(step.after)}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else str(value)


def _ladder_rejected(run: Run, changes: Mapping[str, Any]) -> tuple[Rejected, ...]:
    """The rungs of ZeRO below the plan's own that do not fit, with everything else as in the plan."""
    spec = run.spec
    assert spec is not None
    if spec.data_parallel < 2 or (run.recipe is not None and "zero_stage" not in run.recipe.adjustable):
        return ()
    goal = _rung(spec, changes)
    here = (spec.zero_stage, spec.offload_optimizer, spec.offload_param) if spec.engine == "deepspeed" else None
    found: list[Rejected] = []
    for name, stage, optimizer, param in LADDER:
        rung = {"zero_stage": stage, "offload_optimizer": optimizer, "offload_param": param}
        if tuple(rung.values()) in (goal, here) or (spec.engine == "deepspeed" and stage < spec.zero_stage):
            continue
        engine = {"engine": "deepspeed", "mixed_precision": _precision(spec, changes)}
        result = estimate(changed_spec(spec, {**changes, **engine, **rung}))
        if result.verdict is not Verdict.FITS:
            found.append(Rejected(name, result))
    return tuple(found)


def _rung(spec: Spec, changes: Mapping[str, Any]) -> tuple[Any, ...]:
    """Where a run stands on ZeRO's ladder with the changes made."""
    return tuple(
        changes.get(name, getattr(spec, name)) for name in ("zero_stage", "offload_optimizer", "offload_param")
    )


def _beyond(spec: Spec, changes: Mapping[str, Any]) -> tuple[Rejected, ...]:
    """The rung of ZeRO above the plan's own: it fits as well, and is more than is needed."""
    goal = _rung(spec, changes)
    rungs = [tuple(rung[1:]) for rung in LADDER]
    if goal not in rungs[:-1] or goal[1] == "none":
        return ()
    name, stage, optimizer, param = LADDER[-1]
    rung = {"zero_stage": stage, "offload_optimizer": optimizer, "offload_param": param}
    return (Rejected(name, estimate(changed_spec(spec, {**changes, **rung}))),)


def _precision(spec: Spec, changes: Mapping[str, Any]) -> str:
    stated = str(changes.get("mixed_precision", spec.mixed_precision))
    return stated if stated != "no" else "bf16"
