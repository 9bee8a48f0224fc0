"""The planner: the cheapest set of changes that turns ``does-not-fit`` into ``fits``, what was not enough, and what
else would do.

The best by class, step time and number of changes is carried out in memory, read again and estimated again. A plan
that does not then fit is not offered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from lintfit.documents.model import FileEdit
from lintfit.documents.workspace import Workspace
from lintfit.findings.model import Applicability, Fix, Plan, Rejected, Step
from lintfit.fit.actions import actions
from lintfit.fit.applying import EXPANDS, VISIBLE, WRITTEN_WITH, Applied, LeftToPerson, Shown, apply_changes, uncasts
from lintfit.fit.axes import buckets
from lintfit.fit.axes.sharding import FIELDS, LADDER, Rung
from lintfit.fit.existing import has_config
from lintfit.fit.feasibility import Feasibility, Stops, no_errors
from lintfit.fit.gaps import VALUE, VARIABLE
from lintfit.fit.host import beyond_job, beyond_starting_job, unstated
from lintfit.fit.listing import LIST
from lintfit.fit.named_after import named_after
from lintfit.fit.options import Candidate, Effect, Subject
from lintfit.fit.own_loss import undivided
from lintfit.fit.packages import packages_of
from lintfit.fit.proof import BY_HAND, cheaper, decides, proof
from lintfit.fit.search import Fitting, Search, at_least, leaves_room, more_likely_than_not, widened
from lintfit.fit.shortfall import shortfall
from lintfit.fit.space import Space
from lintfit.fit.speed import relative_step_time, rounded
from lintfit.fit.unfit import unfit_for_shards
from lintfit.frozen import frozen, replace
from lintfit.memory import estimate
from lintfit.memory.activations.recipe import attention_of
from lintfit.memory.engines.zero_config import zero_config
from lintfit.memory.result import Estimate, Verdict
from lintfit.memory.spec import GIB, Spec
from lintfit.memory.verdict.seeing import with_images
from lintfit.options.model import Options
from lintfit.run.change import changed_spec, states_deepspeed
from lintfit.run.gpu_support import unsupported
from lintfit.run.model import Run
from lintfit.settings.model import in_words, spoken
from lintfit.verdict.capped import fits_up_to
from lintfit.verdict.reasons import IMAGES

_ATTEMPTS = 6
"""How many of the best candidates of a class are carried out before one that can only be shown is taken."""

_FURTHEST = Effect.ADAPTERS
"""Beyond it a plan is no fix of this run but another run; ``lintfit fit`` lists those."""

MORE_GPUS = "it needs more GPUs than there are"

_TIERS = (
    (Effect.SAME, Effect.NUMERICS),
    (Effect.ROUNDED_UPDATES, Effect.ROUNDED_BASE, Effect.SHORTER),
    (Effect.ADAPTERS,),
)
"""Classes of changes by what becomes of the training: its objective, data and parameters stay; less of them is left;
something else is trained. Within one, what lintfit can write comes before what a person has to."""


@frozen
class Outcome:
    """A plan, or None with what is missing; either way the candidates that were tried and do not suffice.

    ``refused`` counts the candidates that were carried out and, read again, were not what they claimed. ``closer``
    leaves more of the training as it is than the plan, and only may fit.
    """

    plan: Plan | None
    closer: Fitting | None = None
    rejected: tuple[Rejected, ...] = ()
    shortfall: str = ""
    refused: int = 0


def plan(run: Run, workspace: Workspace, cli: Options, stops: Stops = no_errors) -> Outcome:
    """What would make the run fit, else what may. The run must have a spec whose estimate does not fit.

    ``stops`` says which errors a run ends with: a plan brings none that was not there before."""
    assert run.spec is not None
    space = Space(Subject(run, run.spec, packages=packages_of(run, workspace)), _FURTHEST)
    search = Search(space, run.options.margin)
    feasibility = Feasibility(run, workspace, cli, stops)
    refused = 0
    may_do = [search.for_tight()] if estimate(run.spec).verdict is Verdict.DOES_NOT_FIT else []
    for looking in (search, *may_do):
        best = _Best(run, looking, feasibility)
        found = best.plan()
        refused += best.refused
        if found is None:
            continue
        if may_do and not looking.tight and (best.leaves or best.changes_more):
            kept = _Best(run, may_do[0], feasibility)
            staying = kept.staying(surely=not best.leaves)
            refused += kept.refused
            if staying is not None:
                return Outcome(staying, None, staying.rejected, refused=refused)
        if may_do and not looking.tight and best.surprises:
            plainer = _Best(run, search.for_likely(), feasibility)
            plain = plainer.staying(surely=False)
            refused += plainer.refused
            if plain is not None:
                return Outcome(plain, None, plain.rejected, refused=refused)
        return Outcome(found, best.closer, found.rejected, refused=refused)
    return Outcome(None, None, _ladder_rejected(run, {}), shortfall(run, space), refused)


@frozen
class _Chosen:
    """A candidate as a plan. ``cheaper``: which of all that costs less is known not to fit (:func:`.proof.cheaper`)."""

    fitting: Fitting
    plan: Plan
    cheaper: str


class _Best:
    """The best plan of a search: the first that can be written, else the first that can only be shown."""

    def __init__(self, run: Run, search: Search, feasibility: Feasibility) -> None:
        self.run, self.search, self.feasibility = run, search, feasibility
        self.refused = 0
        """How many were carried out and were not what they claimed."""
        self.closer: Fitting | None = None
        """What leaves more of the training as it is than the plan, and only may fit."""
        self.leaves = False
        """Whether the plan gives up the run's engine, or needs a package that the project does not install."""
        self.changes_more = False
        """Whether less of the training is left by the plan, or something else is trained."""
        self.surprises = False
        """Whether the plan splits a config in two, or asks for larger micro-batches."""

    def staying(self, *, surely: bool) -> Plan | None:
        """The best plan that keeps objective, data and parameters with the engine and the packages that are there, and
        can be written: who has these would rather try it than another training, engine or package. ``surely``: one that
        does more likely than not."""
        for effect in _TIERS[0]:
            found = self._of_class(effect, at_home=True)
            if found is None or not _settles(found.plan):
                continue
            if not surely or more_likely_than_not(found.fitting.estimate, self.search.limit):
                return self._told(found)
        return None

    def plan(self) -> Plan | None:
        last: _Chosen | None = None
        for tier in _TIERS:
            shown: _Chosen | None = None
            for effect in tier:
                found = self._of_class(effect)
                if found is not None and _guards_against_images(shown, found):
                    continue
                if found is not None and _settles(found.plan):
                    return self._told(replace(found, cheaper=BY_HAND) if shown or last else found)
                if found is not None and found.fitting.candidate.grows:
                    last = last or found
                else:
                    shown = shown or found
            if shown is not None:
                return self._told(shown)
        return self._told(last) if last is not None else None

    def _of_class(self, effect: Effect, *, at_home: bool = False) -> _Chosen | None:
        """The best plan of a class that can be written, else the best that can only be shown; ``at_home``: with the
        engine and the packages that are there."""
        first: tuple[Fitting, str] | None = None
        attempts = 0
        for found in self.search.of_class(effect, at_home=at_home):
            known = self.feasibility.can(found.candidate.changes)
            if first is not None and (not known or found.candidate.grows):
                continue
            plan_or_why = attempted(self.run, found, self.search, self.feasibility)
            if isinstance(plan_or_why, Shown):
                self.refused += attempts
                return _Chosen(found, displayed(self.run, found, plan_or_why, self.search), cheaper(self.search, found))
            if isinstance(plan_or_why, Plan):
                self.refused += attempts
                known_of = BY_HAND if first is not None else cheaper(self.search, found)
                return self._by_own_config(self._leanest(_Chosen(found, plan_or_why, known_of)))
            if first is None or (IMAGES in plan_or_why and IMAGES not in first[1]):
                first = found, plan_or_why
            attempts += known
            if attempts == _ATTEMPTS:
                break
        self.refused += attempts
        if first is None:
            return None
        return _Chosen(first[0], displayed(self.run, *first, self.search), cheaper(self.search, first[0]))

    def _leanest(self, chosen: _Chosen) -> _Chosen:
        """The plan without the steps that it fits without, which only made it faster: nobody has asked for those. One
        that may fit goes without a step where what is likely then leaves room enough."""
        for leaner in self.search.leaner(chosen.fitting):
            if self.search.tight and not self._is_as_good(leaner, chosen.fitting):
                continue
            if self.feasibility.can(leaner.candidate.changes):
                plan = attempted(self.run, leaner, self.search, self.feasibility)
                if isinstance(plan, Plan):
                    return self._leanest(_Chosen(leaner, plan, ""))
        return chosen

    def _is_as_good(self, leaner: Fitting, found: Fitting) -> bool:
        """Whether of two that may fit the leaner one has room enough, and is no less likely to fit."""
        one, other = leaner.estimate, found.estimate
        limit = self.search.limit
        return leaves_room(one, limit) and more_likely_than_not(one, limit) >= more_likely_than_not(other, limit)

    def _by_own_config(self, chosen: _Chosen) -> _Chosen:
        """The plan with the config that the project has for more offload, where it would make a new one for a part of
        that: whoever has the file names it."""
        if not _makes_a_file(chosen.plan):
            return chosen
        for more in self.search.offloading_more(chosen.fitting):
            rung = more.spec.zero_stage, more.spec.offload_optimizer, more.spec.offload_param
            has = has_config(self.run, rung, self.feasibility.workspace)
            if has and self.feasibility.can(more.candidate.changes):
                plan = attempted(self.run, more, self.search, self.feasibility)
                if isinstance(plan, Plan) and not _makes_a_file(plan):
                    why = "The project has a config for it; a new one could leave the parameters on the GPU"
                    return _Chosen(more, replace(plan, effects=(*plan.effects, why)), "")
        return chosen

    def _told(self, found: _Chosen) -> Plan:
        """The plan with why nothing cheaper does, and what changes less and may fit."""
        candidate = found.fitting.candidate
        self.leaves, self.changes_more = candidate.leaves, candidate.effect not in _TIERS[0]
        self.surprises = candidate.surprises
        rejected = found.plan.rejected
        if not self.search.tight:
            self.closer = _closer(self.search, found.fitting)
        if (near := self.closer) is not None:
            rejected = (Rejected(near.candidate.name, near.estimate, decides(near.spec, near.estimate)), *rejected)
        return replace(found.plan, proves=partial(proof, self.search, found.cheaper), rejected=rejected)


def _guards_against_images(shown: _Chosen | None, found: _Chosen) -> bool:
    """Whether a plan gives up an engine, or brings a package, for images of which nobody says how many there are: to
    say that is less, and the plan that does without is shown."""
    return shown is not None and IMAGES in (shown.plan.by_hand or "") and found.fitting.candidate.leaves


def _makes_a_file(plan: Plan) -> bool:
    return any(edit.document is None for edit in plan.fix.edits)


def _settles(plan: Plan) -> bool:
    """Whether a plan is as good as written: it is, or it is not to be, whatever another would do."""
    return not plan.by_hand or isinstance(plan.by_hand, Shown)


def _closer(search: Search, found: Fitting) -> Fitting | None:
    """What leaves more of the training as it is than a plan, and only may fit: best first."""
    tier = next(number for number, tier in enumerate(_TIERS) if found.candidate.effect in tier)
    looking = search.for_tight()
    before = (effect for tier in _TIERS[:tier] for effect in tier)
    near = next(chain.from_iterable(looking.of_class(effect) for effect in before), None)
    return near if near is not None and near.candidate.options else None


def attempted(run: Run, found: Fitting, search: Search, feasibility: Feasibility) -> Plan | str:
    """The plan carried out in memory, read again and estimated again; why not, where it does not come out as said."""
    assert run.spec is not None
    if not run.documents:
        return "the run is described by a spec, not by files"
    if found.candidate.changes.get("gpus", 0) > max(run.spec.gpus, run.hardware.available or 0):
        return MORE_GPUS
    if reason := feasibility.not_told(found.candidate.changes):
        return reason
    applied = apply_changes(run, found.candidate.changes, feasibility.workspace, feasibility.cli)
    if isinstance(applied, str):
        if isinstance(applied, LeftToPerson):
            feasibility.left(found.candidate.changes, applied)
        return applied
    found = _without_unwritten(found, applied)
    if reason := unfit_for_shards(run, found.candidate.changes) or next(unsupported(applied.run), ""):
        return LeftToPerson(reason, applied)
    result = _as_claimed(run, found, search, applied, feasibility)
    if isinstance(result, str):
        return result
    mended = feasibility.mended(applied)
    if isinstance(mended, str):
        return mended
    alone = feasibility.on_one_gpu(mended)
    if isinstance(alone, str):
        return alone
    if alone is not applied:
        applied, result = alone, _as_claimed(run, found, search, alone, feasibility)
        if isinstance(result, str):
            return result
    if search.tight:
        applied = feasibility.with_fewer_gaps(applied, result)
    applied = feasibility.installing(found.candidate, applied)
    if search.tight and applied.run.spec is not None and _without_images_alone(applied.run.spec, search):
        return LeftToPerson(f"nobody says of a sample {IMAGES}", applied)
    assert applied.run.spec is not None
    if reason := feasibility.for_person(found.candidate, applied):
        return reason
    if reason := unstated(run.spec, applied.run.spec, result):
        return LeftToPerson(f"{reason} (--host-memory)", applied)
    if reason := beyond_job(run, applied.run.spec, result):
        return LeftToPerson(reason, applied)
    plan = _plan(run, found, search, applied)
    jobs = tuple(beyond_starting_job(run, applied.run.spec, result, feasibility.workspace))
    limits = tuple(_up_to(applied.run.spec))
    names = tuple(named_after(run.spec, applied, found.candidate.changes))
    also = tuple(_along(applied))
    plan = replace(plan, effects=(*plan.effects, *also, *names, *limits))
    fix = feasibility.care.weighed(plan.fix)
    if (limits or jobs or LIST in applied.places) and fix.applicability is Applicability.SAFE:
        fix = replace(fix, applicability=Applicability.UNSAFE)
    if jobs and fix.applicability is Applicability.UNSAFE:
        fix = replace(fix, caution="; ".join(filter(None, (fix.caution, *jobs))))
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


def _along(applied: Applied) -> Iterator[str]:
    """Which other runs get what a plan writes into code that they run as well."""
    for path in dict.fromkeys(applied.along.values()):
        others = [other for other, theirs in applied.along.items() if theirs == path]
        runs, does = ("runs", "does") if len(others) == 1 else ("run", "do")
        shared = f"{path.as_posix()} as well and {does} not fit these GPUs either"
        yield f"The same then holds for {', '.join(others)}, which {runs} {shared}"


def _up_to(spec: Spec) -> Iterator[str]:
    """What a plan counts on where nobody states how long the samples are."""
    longest = fits_up_to(spec) if spec.generation is None else None
    if longest is not None:
        yield f"it fits while no sample has more than {longest:,} tokens: no file states their length"


def _without_unwritten(found: Fitting, applied: Applied) -> Fitting:
    """A candidate without the sizes of buffers that are not written: a config of the tree that stands in for a new one
    has others, and does with them."""
    spec, candidate = applied.run.spec, found.candidate
    if spec is None or spec.engine != "deepspeed" or buckets.NAMES.isdisjoint(candidate.changes):
        return found
    there = buckets.sizes(zero_config(spec))
    left = {name for name, size in there.items() if candidate.changes.get(name, size) != size} - applied.refused
    changes = {name: value for name, value in candidate.changes.items() if name not in left}
    if len(changes) == len(candidate.changes):
        return found
    options = tuple(
        each for each in candidate.options if not each.changes or not changes.keys().isdisjoint(each.changes)
    )
    return replace(found, candidate=replace(candidate, options=options, changes=changes))


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
    other = next(_unlike(run, found, spec), None)
    if other is not None:
        name, said = other
        reason = f"once written, {name.replace('_', ' ')} would still be {spoken(said)}: something else decides it"
        feasibility.undone(found.candidate.changes, name, reason)
        return reason
    result = at_least(spec, estimate(spec))
    if not search.enough(result):
        why = _why_not(result, search)
        return f"written into these files it would {why}: they cannot say all that the plan counts on"
    for older in applied.run.older():
        other_version = estimate(older.run.spec) if older.run.spec is not None else result
        result = widened(result, other_version)
        if not search.enough(other_version):
            return f"it would not fit with {older.library} before {older.bound}, which may be installed (--versions)"
    return result


def _without_images_alone(spec: Spec, search: Search) -> bool:
    """Whether a run is not likely to fit once there are images, of which nobody says how many there are."""
    seen = with_images(spec) if spec.facts.vision is not None and spec.images is None else None
    return seen is not None and estimate(seen[0]).peak.likely > search.limit


def _why_not(result: Estimate, search: Search) -> str:
    """What an estimate lacks that is not enough."""
    if result.capacity_bytes is not None and result.peak.high > search.limit:
        return f"take {result.peak.high / GIB:.1f} of {search.limit / GIB:.1f} GiB"
    return "lack host memory" if result.host_is_short or result.host_is_tight else "be no run whose memory is known"


def _unlike(run: Run, found: Fitting, read: Spec) -> Iterator[tuple[str, Any]]:
    """What the written run does otherwise than the plan says, with how it does it.

    The rank, modules and kind of four bits of adapters that the script declares itself are its own.
    """
    claimed = found.spec
    for name in dict.fromkeys((*_DECIDES, *found.candidate.changes)):
        if name in _OWN or not hasattr(claimed, name):
            continue
        said, wanted = _said(read, name), _said(claimed, name)
        loaded = (
            name == "weights_dtype" and {said, wanted} == {"bf16", "fp16"} and uncasts(run, found.candidate.changes)
        )
        if said != wanted and not loaded:
            yield name, said
    if (claimed.quantization is None) is not (read.quantization is None):
        yield "quantization", read.quantization


def _said(spec: Spec, name: str) -> Any:
    """What a spec has for a setting: of attention the kernel that runs, whoever says so."""
    return attention_of(spec) if name == "attention" else getattr(spec, name)


_DECIDES = ("method", "engine", "fsdp", "gpus", "nodes")
_OWN = frozenset({"lora_rank", "lora_targets", "quantization"})


def displayed(run: Run, found: Fitting, why: str, search: Search) -> Plan:
    """A plan that fits but that lintfit cannot write into these files, with the reason."""
    if not isinstance(why, LeftToPerson):
        return replace(_plan(run, found, search, None), by_hand=why)
    plan = replace(_plan(run, _without_unwritten(found, why.applied), search, None), by_hand=why)
    done = actions(run, plan.fix.changes, why.applied)
    return replace(plan, actions=done, fix=replace(plan.fix, message="; ".join(action.said() for action in done)))


def _plan(run: Run, found: Fitting, search: Search, applied: Applied | None) -> Plan:
    candidate = found.candidate
    steps = tuple(_steps(run, candidate, applied))
    applicability = candidate.applicability if applied is not None else Applicability.DISPLAY
    edits = applied.edits if applied is not None else ()
    claimed = _claimed(candidate, steps)
    done = actions(run, claimed, applied)
    gradients = (*_clips(run, applied.run), *undivided(run, applied.run)) if applied is not None else ()
    shown = tuple(_beside(applied, VISIBLE, "0")) if applied is not None else ()
    expands = tuple(_beside(applied, EXPANDS, True)) if applied is not None else ()
    caution = _caution(found, search, told=bool(expands))
    if (search.tight or gradients) and applicability is Applicability.SAFE:
        applicability = Applicability.UNSAFE
    return Plan(
        applicability=applicability,
        steps=(*steps, *shown, *expands),
        estimate=found.estimate,
        relative_step_time=rounded(found.step_time),
        fix=Fix("; ".join(action.said() for action in done), applicability, edits, claimed, caution),
        actions=done,
        rejected=_ladder_rejected(run, candidate.changes),
        name=f"{candidate.name} on one GPU" if shown else candidate.name,
        effects=(*candidate.notes, *gradients),
    )


def _beside(applied: Applied, name: str, value: object) -> Iterator[Step]:
    """That a plan sets a variable of the launch's environment."""
    edits = tuple(each.edit for each in applied.written if each.change == name)
    if edits:
        yield Step(name, None, value, edits[0].path, edits)


def _clips(before: Run, after: Run) -> tuple[str, ...]:
    """That a DeepSpeed JSON of the tree, named for another, clips gradients, which the Trainer itself does not under
    DeepSpeed. One that no longer does is not named (``existing.py``)."""
    if before.deepspeed is None or after.deepspeed is None:
        return ()
    was, now = (source.node("gradient_clipping") for source in (before.deepspeed, after.deepspeed))
    if was is not None or now is None:
        return ()
    old, new = before.deepspeed.document.path.name, after.deepspeed.document.path.name
    norm = "max_grad_norm" if now.plain() == "auto" else str(now.plain())
    return (f"Gradients are clipped at {norm}, as {new} asks and {old} does not",)


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


def _caution(found: Fitting, search: Search, *, told: bool) -> str:
    """That a plan may not do, and what decides it; ``told``: the plan itself does what there is against gaps."""
    if not search.tight:
        return ""
    need = f"it may take up to {found.estimate.peak.high / GIB:.1f} of {search.limit / GIB:.1f} GiB"
    why = decides(found.spec, found.estimate)
    if told:
        why = why.replace(f": {VARIABLE}={VALUE}", ", before the allocator leaves fewer")
    return f"{need} ({why})" if why else need


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
