"""What else would make a run fit: the best plan of each kind, without those that another one beats in everything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from lintfit.documents.workspace import Workspace
from lintfit.findings.model import Plan
from lintfit.fit.feasibility import Feasibility, Stops, no_errors
from lintfit.fit.options import Candidate, Effect, Subject
from lintfit.fit.packages import packages_of
from lintfit.fit.planner import Outcome, attempted, displayed, plan
from lintfit.fit.proof import decides
from lintfit.fit.search import Fitting, Ranked, Search
from lintfit.fit.shortfall import shortfall
from lintfit.fit.space import Space
from lintfit.frozen import frozen
from lintfit.memory.spec import GIB
from lintfit.options.model import Options
from lintfit.run.model import Run

MOST = 8
"""Plans that are listed at most."""

PlanKind = tuple[str, ...]


@frozen
class Alternatives:
    """The plans of a run, or what is missing where there is none: first the one that ``check`` offers, then by rank.

    ``fits`` says that the run fits as it is, with the margin asked for; ``combinations`` how many were looked at, by an
    estimate or a bound.
    """

    plans: tuple[Plan, ...] = ()
    fits: bool = False
    combinations: int = 0
    shortfall: str = ""


def alternatives(
    run: Run, workspace: Workspace, cli: Options, known: Outcome | None = None, stops: Stops = no_errors
) -> Alternatives:
    """The best plan of each kind that nothing else beats. The run must have a spec with a capacity.

    ``known``: what ``check`` offers, where that has been worked out.
    """
    assert run.spec is not None
    space = Space(Subject(run, run.spec, packages=packages_of(run, workspace)))
    search = Search(space, run.options.margin)
    kinds = _Kinds(search)
    found = sorted(kinds.best(), key=lambda way: way[0].rank)
    looked_at = search.tried.count + len(found)
    if found and not found[0][0].candidate.options:
        return Alternatives(fits=True, combinations=looked_at)
    best = known if known is not None else plan(run, workspace, cli, stops)
    others = [way for _, way in _ways(run, found, search, Feasibility(run, workspace, cli, stops))]
    listed = [best.plan] if best.plan is not None else []
    if best.closer is not None:
        listed.append(_only_likely(run, best.closer))
    names = {each.name for each in listed}
    listed += [way for way in others if way.name not in names]
    if not listed:
        return Alternatives(combinations=looked_at, shortfall=shortfall(run, space))
    return Alternatives(tuple(listed[:MOST]), combinations=looked_at)


def _only_likely(run: Run, fitting: Fitting) -> Plan:
    """A plan that may do, for reading: what lets it fail."""
    search = Search(Space(Subject(run, fitting.spec), Effect.SAME), run.options.margin)
    need = f"it may take up to {fitting.estimate.peak.high / GIB:.1f} of {search.limit / GIB:.1f} GiB"
    why = decides(fitting.spec, fitting.estimate)
    return displayed(run, fitting, f"{need} ({why})" if why else need, search)


Way = tuple[Fitting, Plan]


def _ways(
    run: Run, found: Sequence[tuple[Fitting, Iterator[Fitting]]], search: Search, feasibility: Feasibility
) -> list[Way]:
    """What to list, best first. What is to be carried out by hand hides nothing that lintfit can write."""
    others = {id(best): rest for best, rest in found}
    kinds = [best for best, _ in found]
    unbeaten = _unbeaten(kinds)
    ways = [_carried_out(run, one, others[id(one)], search, feasibility) for one in unbeaten[:MOST]]
    by_hand = {id(one) for one, way in ways if way.by_hand}
    known = {id(one) for one in unbeaten}
    for one in _unbeaten([one for one in kinds if id(one) not in by_hand]) if by_hand else ():
        if id(one) not in known and len(ways) < MOST:
            way = _carried_out(run, one, others[id(one)], search, feasibility)
            ways += [] if way[1].by_hand else [way]
    return sorted(ways, key=lambda way: way[0].rank)


def written(run: Run, fitting: Fitting, search: Search, feasibility: Feasibility) -> Plan:
    """The plan as it would be written, else as it would have to be carried out by hand."""
    found = attempted(run, fitting, search, feasibility)
    return found if isinstance(found, Plan) else displayed(run, fitting, found, search)


_TRIED = 2
"""How many of a kind are carried out where the best of it does not come out as it claims."""
_LOOKED_AT = 60
"""How many that fit are looked at for those."""


def _carried_out(
    run: Run, fitting: Fitting, others: Iterator[Fitting], search: Search, feasibility: Feasibility
) -> Way:
    """The plan as it would be written, else the next of its kind that can be, else as one to carry out by hand."""
    best = attempted(run, fitting, search, feasibility)
    if isinstance(best, Plan):
        return fitting, best
    tried = 0
    for other in islice(others, _LOOKED_AT) if run.documents else ():
        if not feasibility.can(other.candidate.changes):
            continue
        found = attempted(run, other, search, feasibility)
        if isinstance(found, Plan):
            return other, found
        tried += 1
        if tried == _TRIED:
            break
    return fitting, displayed(run, fitting, best, search)


class _Kinds:
    """The best candidate of every kind that fits."""

    def __init__(self, search: Search) -> None:
        self.search = search

    def best(self) -> Iterator[tuple[Fitting, Iterator[Fitting]]]:
        """One by one, each with the others of its kind; a kind that only adds to one that fits is no other way out."""
        done: list[set[str]] = []

        def new(candidate: Candidate) -> bool:
            return not done or _is_new(candidate.kind, done)

        for effect in Effect:
            by_kind = _by_kind(self.search.reachable(effect, new))
            for kind, members in sorted(by_kind.items(), key=lambda item: len(item[0])):
                if not _is_new(kind, done):
                    continue
                fits = self.search.first_fitting(members)
                fitting = next(fits, None)
                if fitting is None:
                    continue
                done.append(set(kind))
                yield fitting, fits
                if not fitting.candidate.options:
                    return


def _is_new(kind: PlanKind, done: Sequence[set[str]]) -> bool:
    """Whether no known kind is a part of this one; what has no kind of its own is a part of itself only."""
    return not any(known <= set(kind) and (known or not kind) for known in done)


def _by_kind(reachable: Iterable[Ranked]) -> dict[PlanKind, list[Ranked]]:
    found: dict[PlanKind, list[Ranked]] = {}
    for ranked in reachable:
        found.setdefault(ranked.candidate.kind, []).append(ranked)
    return found


def _unbeaten(found: Sequence[Fitting]) -> list[Fitting]:
    """Those, sorted by rank, of which no other is as good in class, host, step time and changes with as little memory.

    The best stays whatever it needs: it is what ``check`` offers. Of the others, what comes earlier by rank is beaten
    by less memory alone; what comes later must save an amount that somebody would care about.
    """
    kept: list[Fitting] = []
    for index, one in enumerate(found):
        earlier = any(_beats(other, one, _SLACK) for other in found[:index])
        if not index or not (earlier or any(_beats(other, one, 0) for other in found[index + 1 :])):
            kept.append(one)
    return kept


_SLACK = GIB
"""Bytes of a GPU or a host that are no reason to list another plan."""


def _beats(one: Fitting, other: Fitting, slack: int) -> bool:
    cheaper = all(mine <= theirs for mine, theirs in zip(_costs(one), _costs(other), strict=True))
    mine, theirs = one.estimate, other.estimate
    return cheaper and mine.peak.high <= theirs.peak.high + slack and mine.host.peak <= theirs.host.peak + slack


def _costs(one: Fitting) -> tuple[float, ...]:
    """Class, what the project lacks, tokens cut, split configs or larger micro-batches, quoted time, changes."""
    effect, strange, cut, surprises, _, count, _ = one.rank
    return effect, strange, cut, surprises, one.quoted, count
