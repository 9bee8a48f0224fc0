"""The planner: the cheapest set of changes that turns ``does-not-fit`` into ``fits``, what was not enough, and what
else would do.

The best by class, step time and number of changes is carried out in memory, read again and estimated again. A plan
that does not then fit is not offered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lintfit.documents.model import FileEdit
from lintfit.documents.workspace import Workspace
from lintfit.findings.model import Applicability, Fix, Plan, Rejected, Step
from lintfit.fit.actions import actions
from lintfit.fit.applying import WRITTEN_WITH, Applied, Feasibility, NotAlone, apply_changes
from lintfit.fit.axes.sharding import FIELDS, LADDER, Rung
from lintfit.fit.options import Candidate, Effect, Subject
from lintfit.fit.search import Fitting, Search, suffices, widened
from lintfit.fit.shortfall import shortfall
from lintfit.fit.space import Space
from lintfit.fit.speed import relative_step_time, rounded
from lintfit.frozen import frozen, replace
from lintfit.memory import estimate
from lintfit.memory.result import Estimate, Verdict
from lintfit.memory.spec import GIB, Spec
from lintfit.options.model import Options
from lintfit.run.change import changed_spec, states_deepspeed
from lintfit.run.model import Run
from lintfit.settings.model import in_words, spoken

_ATTEMPTS = 6
"""How many of the best candidates of a class are carried out before one that can only be shown is taken."""

_FURTHEST = Effect.ADAPTERS
"""Beyond it a plan is no fix of this run but another run; ``lintfit fit`` lists those."""


@frozen
class Outcome:
    """A plan, or None with what is missing; either way the candidates that were tried and do not suffice.

    ``refused`` counts the candidates that were carried out and, read again, were not what they claimed.
    """

    plan: Plan | None
    rejected: tuple[Rejected, ...] = ()
    shortfall: str = ""
    refused: int = 0


def plan(run: Run, workspace: Workspace, cli: Options) -> Outcome:
    """What would make the run fit. The run must have a spec whose estimate does not fit."""
    assert run.spec is not None
    space = Space(Subject(run, run.spec), _FURTHEST)
    search = Search(space, run.options.margin)
    feasibility = Feasibility(run, workspace, cli)
    refused = 0
    for effect in Effect:
        if effect > _FURTHEST:
            break
        found, failed = _of_class(run, search, effect, feasibility)
        refused += failed
        if found is not None:
            return Outcome(found, found.rejected, refused=refused)
    return Outcome(None, _ladder_rejected(run, {}), shortfall(run, space), refused)


def _of_class(run: Run, search: Search, effect: Effect, feasibility: Feasibility) -> tuple[Plan | None, int]:
    """The best plan of a class that can be written, else the best that can only be shown; how many were refused."""
    first: tuple[Fitting, str] | None = None
    attempts = 0
    for found in search.of_class(effect):
        known = feasibility.can(found.candidate.changes)
        if first is not None and not known:
            continue
        plan_or_why = attempted(run, found, search, feasibility)
        if isinstance(plan_or_why, Plan):
            return plan_or_why, attempts
        first = first or (found, plan_or_why)
        attempts += known
        if attempts == _ATTEMPTS:
            break
    return (displayed(run, *first, search) if first is not None else None), attempts


def attempted(run: Run, found: Fitting, search: Search, feasibility: Feasibility) -> Plan | str:
    """The plan carried out in memory, read again and estimated again; why not, where it does not come out as said."""
    assert run.spec is not None
    if not run.documents:
        return "the run is described by a spec, not by files"
    if reason := feasibility.not_told(found.candidate.changes):
        return reason
    applied = apply_changes(run, found.candidate.changes, feasibility.workspace, feasibility.cli)
    if isinstance(applied, str):
        return applied
    result = _as_claimed(run, found, search, applied, feasibility)
    if isinstance(result, str):
        return result
    assert applied.run.spec is not None
    plan = _plan(run, found, search, applied)
    fix = feasibility.care.weighed(plan.fix)
    if fix.applicability is Applicability.DISPLAY:
        return fix.caution
    return replace(
        plan,
        applicability=fix.applicability,
        fix=fix,
        estimate=result,
        relative_step_time=relative_step_time(run.spec, applied.run.spec),
        beyond=_beyond(run, found.candidate.changes),
    )


def _as_claimed(run: Run, found: Fitting, search: Search, applied: Applied, feasibility: Feasibility) -> Estimate | str:
    """The estimate of the run that was written and read again; where that is not what the plan says, what it is."""
    spec = applied.run.spec
    assert run.spec is not None
    if spec is None:
        return f"once written, it is not known any more what the run is ({', '.join(applied.run.unknown)})"
    if applied.run.doubtful:
        names = in_words(applied.run.doubtful)
        before = set(applied.run.doubtful) <= set(run.doubtful)
        when = "as the files are" if before else "once written"
        return f"{when}, it is not certain what is set: {names}"
    if spec.effective_batch != run.spec.effective_batch:
        return f"written into these files a step would see {spec.effective_batch} samples"
    other = next(_unlike(found, spec), None)
    if other is not None:
        name, said = other
        reason = f"once written, {name.replace('_', ' ')} would still be {spoken(said)}: something else decides it"
        feasibility.undone(found.candidate.changes, name, reason)
        return reason
    result = estimate(spec)
    if result.capacity_bytes is not None and result.peak.high > search.limit:
        need = f"{result.peak.high / GIB:.1f} of {search.limit / GIB:.1f} GiB"
        return f"written into these files it would take {need}: they cannot say all that the plan counts on"
    if not suffices(result, search.limit):
        return "written into these files it would lack host memory: they cannot say all that the plan counts on"
    for older in applied.run.older():
        other_version = estimate(older.run.spec) if older.run.spec is not None else result
        result = widened(result, other_version)
        if not suffices(other_version, search.limit):
            return f"it would not fit with {older.library} before {older.bound}, which may be installed (--versions)"
    return result


def _unlike(found: Fitting, read: Spec) -> Iterator[tuple[str, Any]]:
    """What the written run does otherwise than the plan says, with how it does it.

    The rank, modules and kind of four bits of adapters that the script declares itself are its own.
    """
    claimed = found.spec
    for name in dict.fromkeys((*_DECIDES, *found.candidate.changes)):
        if name in _OWN or not hasattr(claimed, name):
            continue
        said, wanted = getattr(read, name), getattr(claimed, name)
        if said != wanted:
            yield name, said
    if (claimed.quantization is None) is not (read.quantization is None):
        yield "quantization", read.quantization


_DECIDES = ("method", "engine", "fsdp", "gpus", "nodes")
_OWN = frozenset({"lora_rank", "lora_targets", "quantization"})


def displayed(run: Run, found: Fitting, why: str, search: Search) -> Plan:
    """A plan that fits but that lintfit cannot write into these files, with the reason."""
    plan = replace(_plan(run, found, search, None), by_hand=why)
    if not isinstance(why, NotAlone):
        return plan
    done = actions(run, plan.fix.changes, why.applied)
    return replace(plan, actions=done, fix=replace(plan.fix, message="; ".join(action.said() for action in done)))


def _plan(run: Run, found: Fitting, search: Search, applied: Applied | None) -> Plan:
    candidate = found.candidate
    steps = tuple(_steps(run, candidate, applied))
    applicability = candidate.applicability if applied is not None else Applicability.DISPLAY
    edits = applied.edits if applied is not None else ()
    claimed = _claimed(candidate, steps)
    done = actions(run, claimed, applied)
    return Plan(
        applicability=applicability,
        steps=steps,
        estimate=found.estimate,
        relative_step_time=rounded(found.step_time),
        fix=Fix("; ".join(action.said() for action in done), applicability, edits, claimed),
        actions=done,
        rejected=_ladder_rejected(run, candidate.changes),
        name=candidate.name,
        effects=candidate.notes,
        proof=proof(search),
    )


def proof(search: Search) -> str:
    """Why nothing that is cheaper does, with the nearest of what does not suffice."""
    tried = search.tried
    if tried.count < 2:
        return ""
    text = f"{tried.count} other combinations do not fit, every one that changes less or costs less time among them"
    nearest = search.closest()
    if nearest is not None:
        candidate, result = nearest
        need = f"{result.peak.high / GIB:.1f} of {search.limit / GIB:.1f} GiB to plan for"
        text += f" (nearest: {candidate.name}, {need})"
    if tried.hosts:
        text += f"; {tried.hosts} of them lack host memory"
    return text


def _steps(run: Run, candidate: Candidate, applied: Applied | None) -> Iterator[Step]:
    assert run.spec is not None
    places = applied.places if applied is not None else {}
    edits = applied.edits if applied is not None else ()
    for name, after in candidate.changes.items():
        before = getattr(run.spec, name, None)
        if before == after:
            continue
        via = WRITTEN_WITH.get(name, name)
        if name in WRITTEN_WITH and via in places:
            after = getattr(_spec_of(applied), name)
        in_config = name in ("engine", *FIELDS)
        home = run.recipe.document.path if run.recipe is not None else run.origin.path
        path = places.get(via) or (places.get("deepspeed") if in_config else None) or home
        yield Step(name, before, after, path, _edits_of(edits, path))


def _claimed(candidate: Candidate, steps: Sequence[Step]) -> dict[str, Any]:
    """What the plan sets: of adapters that the script declares itself, their own rank and modules."""
    own = {step.setting: step.after for step in steps if step.setting in WRITTEN_WITH}
    return {name: own.get(name, value) for name, value in candidate.changes.items()}


def _spec_of(applied: Applied | None) -> Spec:
    assert applied is not None and applied.run.spec is not None
    return applied.run.spec


def _edits_of(edits: Sequence[FileEdit], path: Path) -> tuple[FileEdit, ...]:
    return tuple(edit for edit in edits if edit.path == path)


def _ladder_rejected(run: Run, changes: Mapping[str, Any]) -> tuple[Rejected, ...]:
    """The rungs of ZeRO below the plan's own that do not fit, with everything else as in the plan."""
    spec = run.spec
    assert spec is not None
    if spec.data_parallel < 2 or (run.recipe is not None and "zero_stage" not in run.recipe.adjustable):
        return ()
    goal = _rung(spec, changes)
    here = _rung(spec, {}) if spec.engine == "deepspeed" else None
    found: list[Rejected] = []
    for name, rung in LADDER:
        if rung in (goal, here) or (spec.engine == "deepspeed" and rung[0] < spec.zero_stage):
            continue
        engine = {"engine": "deepspeed", "mixed_precision": _precision(spec, changes)}
        changed = changed_spec(spec, {**changes, **engine, **_settings(rung)}, launched=states_deepspeed(run))
        result = estimate(changed)
        if result.verdict is not Verdict.FITS:
            found.append(Rejected(name, result))
    return tuple(found)


def _rung(spec: Spec, changes: Mapping[str, Any]) -> Rung:
    """Where a run stands on ZeRO's ladder with the changes made."""
    stage, optimizer, param = (changes.get(name, getattr(spec, name)) for name in FIELDS)
    return stage, optimizer, param


def _settings(rung: Rung) -> dict[str, Any]:
    return dict(zip(FIELDS, rung, strict=True))


def _beyond(run: Run, changes: Mapping[str, Any]) -> tuple[Rejected, ...]:
    """The rung of ZeRO above the plan's own: it fits as well, and is more than is needed."""
    spec = run.spec
    assert spec is not None
    goal = _rung(spec, changes)
    name, last = LADDER[-1]
    if goal not in [rung for _, rung in LADDER[:-1]] or goal[1] == "none":
        return ()
    changed = changed_spec(spec, {**changes, **_settings(last)}, launched=states_deepspeed(run))
    return (Rejected(name, estimate(changed)),)


def _precision(spec: Spec, changes: Mapping[str, Any]) -> str:
    stated = str(changes.get("mixed_precision", spec.mixed_precision))
    return stated if stated != "no" else "bf16"
