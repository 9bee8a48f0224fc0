"""The least sharding that still fits: every rung from whole copies to offload, with everything else as it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lintfit.fit.axes.sharding import rungs
from lintfit.fit.figures import Extreme, Figure
from lintfit.fit.options import LEAVE, Candidate, Effect, Option, Subject
from lintfit.fit.search import Fitting, Search, suffices
from lintfit.fit.space import Space
from lintfit.fit.speed import rounded
from lintfit.memory import estimate
from lintfit.memory.spec import Spec
from lintfit.options.model import Margin
from lintfit.run.change import changed_spec
from lintfit.run.model import Run
from lintfit.settings.values import Fsdp

_STRATEGIES = (("NO_SHARD", False), ("SHARD_GRAD_OP", False), ("FULL_SHARD", False), ("FULL_SHARD", True))
"""How FSDP shards, and whether it offloads, from the least to the most memory saved."""


def least_sharding(run: Run, spec: Spec, margin: Margin) -> Extreme:
    """The first rung that fits, and the one before it, which does not."""
    subject = Subject(run, spec)
    search = Search(Space(subject, Effect.SAME), margin)
    question = "the least sharding with everything else as it is"
    beyond: Figure | None = None
    for name, option in _from_the_least(subject):
        candidate = Candidate((option,) if option.is_change else (), dict(option.changes))
        changed = changed_spec(spec, option.changes, launched=search.launched)
        result, time = estimate(changed), search.step_time(changed)
        figure = Figure(name, name, dict(option.changes), result, rounded(time), candidate.notes)
        if suffices(result, search.limit):
            fitting = Fitting(candidate, changed, result, time, search.rank(candidate, changed))
            remark = "it is what the run has" if not option.is_change else ""
            return Extreme(question, figure, beyond, remark, fitting if option.is_change else None)
        beyond = figure
    return Extreme(question, None, beyond)


def _from_the_least(subject: Subject) -> Iterator[tuple[str, Option]]:
    """Each rung by its name, the run's own as an option that changes nothing."""
    spec = subject.spec
    if spec.engine == "fsdp" and spec.fsdp is not None:
        yield from _of_fsdp(spec.fsdp)
        return
    if spec.engine != "deepspeed":
        yield "no sharding", LEAVE
    yield from rungs(subject)


def _of_fsdp(here: Fsdp) -> Iterator[tuple[str, Option]]:
    """FSDP 2 has no strategy that shards nothing."""
    for strategy, offloads in _STRATEGIES:
        wanted = replace(here, strategy=strategy, cpu_offload=offloads)
        name = f"FSDP{here.version} {strategy}{' offloaded to the host' if offloads else ''}"
        if strategy != "NO_SHARD" or here.version == 1:
            yield name, LEAVE if wanted == here else Option(name, {"fsdp": wanted}, kind=name)
