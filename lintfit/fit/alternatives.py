"""What else would make a run fit: the best plan of each kind, without those that another one beats in everything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lintfit.documents.workspace import Workspace
from lintfit.findings import Plan
from lintfit.fit.options import Candidate, Effect, Subject
from lintfit.fit.planner import attempted, displayed, proof
from lintfit.fit.search import Fitting, Ranked, Search
from lintfit.fit.shortfall import shortfall
from lintfit.fit.space import Space
from lintfit.memory.spec import GIB
from lintfit.options import Options
from lintfit.run.model import Run

MOST = 8
"""Plans that are listed at most."""

Kind = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """The plans of a run, best first, or what is missing where there is none.

    ``fits`` says that the run fits as it is, with the margin asked for; ``combinations`` how many were looked at, by an
    estimate or a bound.
    """

    plans: tuple[Plan, ...] = ()
    fits: bool = False
    combinations: int = 0
    shortfall: str = ""


def alternatives(run: Run, workspace: Workspace, cli: Options) -> Alternatives:
    """The best plan of each kind that nothing else beats. The run must have a spec with a capacity."""
    assert run.spec is not None
    space = Space(Subject(run, run.spec))
    search = Search(space, run.options.margin)
    kinds = _Kinds(search)
    found = sorted(kinds.best(), key=lambda fitting: fitting.rank)
    looked_at = search.tried.count + len(found)
    if found and not found[0].candidate.options:
        return Alternatives(fits=True, combinations=looked_at)
    if not found:
        return Alternatives(combinations=looked_at, shortfall=shortfall(run, space))
    plans = [written(run, fitting, search, workspace, cli) for fitting in _unbeaten(found)[:MOST]]
    # Only of the first is it true that all that is cheaper does not fit.
    proofs = [kinds.proof, *[""] * len(plans)]
    shown = (replace(plan, proof=text) for plan, text in zip(plans, proofs, strict=False))
    return Alternatives(tuple(shown), combinations=looked_at)


def written(run: Run, fitting: Fitting, search: Search, workspace: Workspace, cli: Options) -> Plan:
    """The plan as it would be written, else as it would have to be carried out by hand."""
    plan = attempted(run, fitting, search, workspace, cli)
    return plan if isinstance(plan, Plan) else displayed(run, fitting, plan, search)


class _Kinds:
    """The best candidate of every kind that fits. ``proof`` says why nothing cheaper than the best of them does."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.proof = ""

    def best(self) -> Iterator[Fitting]:
        """One by one; a kind that only adds to one that fits is no other way out."""
        done: list[set[str]] = []

        def new(candidate: Candidate) -> bool:
            return _is_new(candidate.kind, done)

        for effect in Effect:
            by_kind = _by_kind(self.search.reachable(effect, new))
            for kind, members in sorted(by_kind.items(), key=lambda item: len(item[0])):
                if not _is_new(kind, done):
                    continue
                fitting = next(self.search.first_fitting(members), None)
                if fitting is None:
                    continue
                done.append(set(kind))
                yield fitting
                if not fitting.candidate.options:
                    return
            if done and not self.proof:
                self.proof = proof(self.search)


def _is_new(kind: Kind, done: Sequence[set[str]]) -> bool:
    """Whether no known kind is a part of this one; what has no kind of its own is a part of itself only."""
    return not any(known <= set(kind) and (known or not kind) for known in done)


def _by_kind(reachable: Iterable[Ranked]) -> dict[Kind, list[Ranked]]:
    found: dict[Kind, list[Ranked]] = {}
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
"""Bytes of a card or a host that are no reason to list another plan."""


def _beats(one: Fitting, other: Fitting, slack: int) -> bool:
    cheaper = all(mine <= theirs for mine, theirs in zip(one.rank[:5], other.rank[:5], strict=True))
    mine, theirs = one.estimate, other.estimate
    return cheaper and mine.peak.high <= theirs.peak.high + slack and mine.host.peak <= theirs.host.peak + slack
