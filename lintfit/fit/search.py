"""The exact search: candidates in the order of their rank, estimated as far as they are asked for.

Nothing is left out without a proof. A class of changes (:class:`Effect`) is looked at as a whole before the next one.
Within it, groups of candidates whose lasting memory alone is too much are dropped with it, the others are ranked, and
those that one sample of the fewest tokens would not make fit are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import chain, islice
from typing import Any, NamedTuple

from lintfit.fit.bounds import Bounds
from lintfit.fit.options import Candidate, Effect, Option
from lintfit.fit.space import OF_A_STEP, Space, merged
from lintfit.fit.speed import Rest, arithmetic, arithmetic_of, in_all, rest, rounded, step_seconds
from lintfit.frozen import frozen, replace
from lintfit.memory import estimate
from lintfit.memory.result import Estimate, Verdict
from lintfit.memory.spec import GIB, Spec
from lintfit.options.model import Margin
from lintfit.run.change import changed_spec, states_deepspeed
from lintfit.verdict.beyond import not_freed

Rank = tuple[int, int, int, bool, float, int, float]


class Ranked(NamedTuple):
    """A candidate with its rank, before it is estimated. ``base`` is a spec that has its lasting changes at least."""

    rank: Rank
    candidate: Candidate
    base: Spec

    @property
    def spec(self) -> Spec:
        """What the candidate makes of the run; made when it is asked for, for most candidates are not."""
        return _on_top(self.base, self.candidate)

    @property
    def quoted(self) -> float:
        """The step time as it is quoted, relative to the run as it is, for the same number of tokens."""
        return rounded(self.rank[6])


def _on_top(base: Spec, candidate: Candidate) -> Spec:
    changes = candidate.changes
    return changed_spec(base, {name: changes[name] for name in changes.keys() & OF_A_STEP})


@frozen
class Fitting:
    """A candidate that fits, with its spec, estimate and step time relative to the run as it is."""

    candidate: Candidate
    spec: Spec
    estimate: Estimate
    step_time: float
    rank: Rank

    @property
    def quoted(self) -> float:
        """The step time as it is quoted."""
        return rounded(self.step_time)


@dataclass(slots=True)
class Tried:
    """What is known not to fit: how many candidates, and the one that comes nearest to its GPUs."""

    count: int = 0
    hosts: int = 0
    """How many of them lack host memory."""
    nearest: tuple[Candidate, Estimate] | None = None
    bounded: list[tuple[int, Candidate]] = field(default_factory=list)
    """Bound in bytes and candidate of what only a bound spoke of."""

    def add(self, candidate: Candidate, result: Estimate) -> None:
        """One that was estimated and does not fit."""
        self.count += 1
        self.consider(candidate, result)

    def take(self, others: Tried) -> None:
        """Those that were ruled out before, which no estimate has spoken of."""
        self.count += others.count
        self.hosts += others.hosts
        self.bounded += others.bounded

    def consider(self, candidate: Candidate, result: Estimate) -> None:
        """Take it for the nearest if it is; what lacks host memory, or does not run at all, is not near."""
        if result.host_is_short:
            self.hosts += 1
        elif result.verdict is not Verdict.UNKNOWN and (
            self.nearest is None or result.peak.high < self.nearest[1].peak.high
        ):
            self.nearest = (candidate, result)


class _Class(NamedTuple):
    """The candidates of a class: those that their lasting memory does not rule out, best first, and the others."""

    ranked: list[Ranked]
    ruled_out: Tried


class Search:
    """Looks through a space for what fits with a margin."""

    def __init__(self, space: Space, margin: Margin) -> None:
        self.space = space
        self.tight = False
        """Whether what may fit and is not sure to does, too."""
        self.spec = space.subject.spec
        self.likely = False
        """Whether what fits more likely than not does, as long as it surprises nobody (:attr:`Candidate.surprises`)."""
        self.capacity = self.spec.capacity_bytes or 0
        self.limit = self.capacity - margin.bytes_of(self.capacity)
        self.tried = Tried()
        self.now = step_seconds(self.spec) / self.spec.seq_len
        self.launched = states_deepspeed(space.subject.run)
        self.bounds = Bounds(self._shortest(), self.launched)
        self.ranked: list[Ranked] = []
        """Those of the class that was looked at last which may fit, best first."""
        self.computing: dict[tuple[Any, ...], float] = {}
        """Seconds of arithmetic by what they depend on: the same for most engines."""
        self._classes: dict[Effect, _Class] = {}
        self._estimates: dict[int, tuple[Candidate, Estimate]] = {}
        """By the candidate that each is of."""

    def for_tight(self) -> Search:
        """The search for what may fit, over the same space; what is worked out already serves it, too."""
        other = copy(self)
        other.tight, other.tried, other.ranked = True, Tried(), []
        return other

    def for_likely(self) -> Search:
        """The search for what fits more likely than not, and neither splits a config nor asks for larger batches."""
        other = self.for_tight()
        other.likely = True
        return other

    def _shortest(self) -> int:
        lengths: list[int] = [
            o.changes["seq_len"] for axis in self.space.passing for o in axis if "seq_len" in o.changes
        ]
        return min([self.spec.seq_len, *lengths])

    def fitting(self) -> Iterator[Fitting]:
        """Everything that fits, best first."""
        for effect in Effect:
            yield from self.of_class(effect)

    def of_class(self, effect: Effect, *, at_home: bool = False) -> Iterator[Fitting]:
        """What fits of one class, best first: by rank, exactly; ``at_home``: with the engine and packages there are."""
        if effect not in self._classes:
            mine, self.tried = self.tried, Tried()
            ranked = sorted(self.reachable(effect), key=lambda ranked: ranked.rank)
            self._classes[effect] = _Class(ranked, self.tried)
            self.tried = mine
        known = self._classes[effect]
        self.ranked = known.ranked
        self.tried.take(known.ruled_out)
        wanted = [each for each in self.ranked if not each.candidate.leaves] if at_home else self.ranked
        if self.likely:
            return self.first_fitting([each for each in wanted if not each.candidate.surprises])
        found = self.first_fitting(wanted)
        return _safest_first(found) if self.tight else found

    def first_fitting(self, found: Sequence[Ranked]) -> Iterator[Fitting]:
        """Those of some candidates that fit, best first."""
        for ranked in sorted(found, key=lambda ranked: ranked.rank):
            rank, candidate, spec = ranked.rank, ranked.candidate, ranked.spec
            result = self.result(candidate, spec)
            if result is not None:
                yield Fitting(candidate, spec, result, self.step_time(spec), rank)

    def leaner(self, found: Fitting) -> Iterator[Fitting]:
        """The same with a step less that it still fits without, or with less offload: the steps that ask most of the
        project first."""
        asking = sorted(found.candidate.options, key=lambda each: (-each.effect, -each.strange, -each.counts))
        fewer = (self.space.without(found.candidate, option) for option in asking)
        yield from self._that_fit(chain(fewer, self.space.offloading_less(found.candidate)))

    def offloading_more(self, found: Fitting) -> Iterator[Fitting]:
        """The same with more offload at the same stage."""
        yield from self._that_fit(self.space.offloading_more(found.candidate))

    def _that_fit(self, candidates: Iterable[Candidate | None]) -> Iterator[Fitting]:
        for candidate in candidates:
            if candidate is None:
                continue
            spec = changed_spec(self.spec, candidate.changes, launched=self.launched)
            result = self.result(candidate, spec)
            if result is not None:
                yield Fitting(candidate, spec, result, self.step_time(spec), self.rank(candidate, spec))

    def behind(self, found: Fitting) -> Iterator[Ranked]:
        """What comes behind a candidate in its class, which was looked at last, and cuts no more tokens."""
        return (other for other in self.ranked if other.rank > found.rank and other.rank[2] <= found.rank[2])

    def reachable(self, effect: Effect, wanted: Callable[[Candidate], bool] | None = None) -> Iterator[Ranked]:
        """The candidates of a class that their lasting memory does not rule out; only those that are wanted."""
        for group in self.space.groups:
            members = self.space.members(group, effect)
            if wanted is not None:
                members = filter(wanted, members)
            first = next(members, None)
            if first is not None:
                yield from self._of_group(group, chain((first,), members))

    def _of_group(self, group: Sequence[Option], members: Iterable[Candidate]) -> Iterator[Ranked]:
        bound, host = self.bounds.group(self.spec, group)
        if self.spec.host_memory_bytes is not None and host > self.spec.host_memory_bytes:
            lacking = sum(1 for _ in members)
            self.tried.count += lacking
            self.tried.hosts += lacking
            return
        if bound > self.limit:
            for candidate in members:
                self._rule_out(bound, candidate)
            return
        shared = _Shared(self, group)
        for candidate in members:
            floor = shared.floor(candidate)
            if floor > self.limit:
                self._rule_out(floor, candidate)
            else:
                yield Ranked(shared.rank(candidate), candidate, shared.base)

    def result(self, candidate: Candidate, spec: Spec) -> Estimate | None:
        """The estimate of a candidate that fits, None for one that does not; keeps count of those."""
        bound = self._needed(self.bounds.least(spec, candidate.changes))
        if bound <= self.limit and spec.micro_batch_size > 1:
            bound = self._needed(self.bounds.of_one_sample(spec, candidate.changes))
        if bound > self.limit:
            self._rule_out(bound, candidate)
            return None
        result = self._estimate(candidate, spec)
        for older in self.space.subject.older:
            if not self.enough(result):
                break
            result = self._worse(result, estimate(changed_spec(older, candidate.changes, launched=self.launched)))
        if self.enough(result):
            return result
        self.tried.add(candidate, result)
        return None

    def _estimate(self, candidate: Candidate, spec: Spec) -> Estimate:
        if id(candidate) not in self._estimates:
            self._estimates[id(candidate)] = candidate, at_least(spec, estimate(spec))
        return self._estimates[id(candidate)][1]

    def enough(self, result: Estimate) -> bool:
        """Whether an estimate is what is looked for."""
        if self.likely:
            return more_likely_than_not(result, self.limit)
        return may_suffice(result, self.limit) if self.tight else suffices(result, self.limit)

    def _needed(self, result: Estimate) -> int:
        """The bytes of an estimate that must not be more than there are."""
        return result.peak.likely if self.tight else result.peak.high

    def _worse(self, newer: Estimate, older: Estimate) -> Estimate:
        """The estimate of the version that does not do, else that of the newest with a range that covers both."""
        return widened(newer, older) if self.enough(older) else older

    def _rule_out(self, bound: int, candidate: Candidate) -> None:
        self.tried.count += 1
        self.tried.bounded.append((bound, candidate))

    def closest(self) -> tuple[Candidate, Estimate] | None:
        """What comes nearest to fitting its GPUs among all that does not, behind the bounds as well.

        The lowest bound is made sharper, step by step, until no bound is below what has been estimated.
        """
        tried = self.tried
        waiting = [(bound, number, False) for number, (bound, _) in enumerate(tried.bounded)]
        heapify(waiting)
        while waiting and (tried.nearest is None or waiting[0][0] < tried.nearest[1].peak.high):
            bound, number, sharp = heappop(waiting)
            candidate = tried.bounded[number][1]
            spec = changed_spec(self.spec, candidate.changes, launched=self.launched)
            if not sharp:
                sharper = self.bounds.least(spec, candidate.changes).peak.high
                heappush(waiting, (max(bound, sharper), number, True))
                continue
            tried.consider(candidate, estimate(spec))
        tried.bounded.clear()
        return tried.nearest

    def rank(self, candidate: Candidate, spec: Spec) -> Rank:
        """Lower is better: class, what the project lacks (:meth:`Subject.strange`), tokens cut, a config that has to be
        split in two or a larger micro-batch, what the plan costs (:func:`cost`), number of changes; the model's own
        step time breaks what is then left of ties."""
        return self._rank(candidate, self.unknown_host(spec), spec.seq_len, step_seconds(spec))

    def unknown_host(self, spec: Spec) -> bool:
        """Whether more is offloaded than the run itself does, to a host of unknown size."""
        return spec.host_memory_bytes is None and bool(offloads(spec) - offloads(self.spec))

    def _rank(self, candidate: Candidate, unknown_host: bool, seq_len: int, seconds: float) -> Rank:
        time = seconds / seq_len / self.now
        cut = max(0, self.spec.seq_len - seq_len)
        count = candidate.count + unknown_host  # that the host has room for it is one thing more to see to
        return candidate.effect, candidate.strange, cut, candidate.surprises, cost(time, count), count, time

    def step_time(self, spec: Spec) -> float:
        """Relative to the run as it is, for the same number of tokens."""
        return step_seconds(spec) / spec.seq_len / self.now


A_CHANGE = 0.1
"""What a change more must save of a step's time to be worth it: the least that times are quoted by."""


def cost(time: float, changes: int) -> float:
    """What ranks plans that do the same to the training, from a step time relative to now and a number of changes.

    Steps that take no longer than now are as good as one another. Of two plans with as many changes the faster one
    costs no more.
    """
    return rounded(max(1.0, time) * (1 + A_CHANGE * changes))


class _Shared:
    """What the candidates of a group have in common: each part of it is worked out once."""

    def __init__(self, search: Search, group: Sequence[Option]) -> None:
        self.search = search
        self.base = base = changed_spec(search.spec, merged(group), launched=search.launched)
        self.unknown_host = search.unknown_host(base)
        self._floors: dict[tuple[Any, ...], int] = {}
        self._rests: dict[int, Rest] = {}
        self._trains = arithmetic_of(base)

    def floor(self, candidate: Candidate) -> int:
        """Bytes of what lasts on the GPU (:meth:`Bounds.floor`), which of all that passes depends on two things."""
        get = candidate.changes.get
        recomputes = get("gradient_checkpointing", self.base.gradient_checkpointing)
        steps = get("gradient_accumulation_steps", self.base.gradient_accumulation_steps)
        key = (recomputes, steps > 1)
        if key not in self._floors:
            spec = _on_top(self.base, candidate)
            self._floors[key] = self.search.bounds.floor(spec, candidate.changes)
        return self._floors[key]

    def rank(self, candidate: Candidate) -> Rank:
        """As :meth:`Search.rank` has it."""
        base, get = self.base, candidate.changes.get
        micro, length = get("micro_batch_size", base.micro_batch_size), get("seq_len", base.seq_len)
        recomputes = get("gradient_checkpointing", base.gradient_checkpointing)
        attention = get("attention", base.attention)
        steps = get("gradient_accumulation_steps", base.gradient_accumulation_steps)
        key = (self._trains, micro, length, recomputes, attention, steps)
        computing = self.search.computing
        if key not in computing or steps not in self._rests:
            spec = _on_top(base, candidate)
            computing[key], self._rests[steps] = arithmetic(spec), rest(spec)
        return self.search._rank(candidate, self.unknown_host, length, in_all(computing[key], self._rests[steps]))


def _safest_first(found: Iterator[Fitting]) -> Iterator[Fitting]:
    """Of what may fit the safest first: of those that are as near to the run as the best and take less than half as
    long again, where each change must lower what is to be planned for by something that somebody cares about."""
    first = next(found, None)
    if first is None:
        return
    alike, further = [first], []
    for other in islice(found, _WEIGHED):
        if other.rank[:_NEARNESS] != first.rank[:_NEARNESS]:
            further = [other]
            break
        alike.append(other)
    limit = _HALF_AS_LONG_AGAIN * first.step_time
    quick = (each for each in alike if each.step_time < limit)
    yield from sorted(quick, key=lambda each: (each.estimate.peak.high + each.candidate.count * GIB, each.rank))
    yield from (each for each in alike if each.step_time >= limit)
    yield from further
    yield from found


_WEIGHED = 200
"""How many of what may fit are held against one another, the cheapest first."""
_HALF_AS_LONG_AGAIN = 1.5
_NEARNESS = 4
"""Parts of a rank that come before its cost."""


def offloads(spec: Spec) -> set[str]:
    """What of the states lies on the host, or beyond it."""
    found = {name for name in ("offload_optimizer", "offload_param") if getattr(spec, name) != "none"}
    return {"offload_optimizer", "offload_param"} if spec.fsdp is not None and spec.fsdp.cpu_offload else found


def widened(newer: Estimate, older: Estimate) -> Estimate:
    """The estimate of the newest version with a range that covers an older one."""
    peak = newer.peak
    return replace(newer, peak=replace(peak, low=min(peak.low, older.peak.low), high=max(peak.high, older.peak.high)))


def at_least(spec: Spec, result: Estimate) -> Estimate:
    """An estimate with what a run needs beyond its settings, where other settings do without it."""
    more = not_freed(spec, result)
    return more.estimate if more is not None and more.estimate.peak.high > result.peak.high else result


def suffices(result: Estimate, limit: int | None = None) -> bool:
    """Whether a run with this estimate is sure to fit its GPUs (``limit`` bytes of them), and its host as far as
    that is known."""
    return (
        result.verdict is Verdict.FITS
        and not result.host_is_tight
        and not result.host_is_short
        and (limit is None or result.peak.high <= limit)
    )


def may_suffice(result: Estimate, limit: int) -> bool:
    """Whether a run with this estimate is likely to fit its GPUs, and does not lack host memory."""
    return result.verdict in (Verdict.FITS, Verdict.TIGHT) and not result.host_is_short and result.peak.likely <= limit


def more_likely_than_not(result: Estimate, limit: int) -> bool:
    """Whether the middle of what is likely and what is to be planned for is within what there is."""
    return may_suffice(result, limit) and result.peak.likely + result.peak.high <= 2 * limit


_ROOM = 0.8
"""Share of the GPU that a run which may fit takes with room for what is not known of it."""


def leaves_room(result: Estimate, limit: int) -> bool:
    """Whether what a run is likely to take leaves a fifth of the GPU."""
    return result.peak.likely <= _ROOM * limit
