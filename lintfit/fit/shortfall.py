"""What is missing where no plan fits: GiB on these GPUs, and how many GPUs of which size would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from lintfit.fit.axes.sharding import FIELDS, LADDER
from lintfit.fit.bounds import Bounds
from lintfit.fit.options import Candidate, Option
from lintfit.fit.search import suffices
from lintfit.fit.space import Space
from lintfit.memory import estimate
from lintfit.memory.result import Estimate
from lintfit.memory.spec import GIB, Spec
from lintfit.run.change import changed_spec, states_deepspeed
from lintfit.run.model import Run

_COUNTS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)

_USABLE_GIB = {24: 23.5, 40: 39.3, 48: 44.4, 80: 79.1, 141: 139.8}
"""GiB that torch sees of GPUs by their name's GB (catalog/data/gpus.json: RTX 4090, A100, L40S, H100, H200)."""


def shortfall(run: Run, space: Space) -> str:
    """A sentence on what is missing when nothing of a space fits."""
    nearest = _smallest(space)
    # A recipe's front end shards in its own way, which more GPUs with ZeRO say nothing of.
    cards = _cards(replace(nearest.spec, host_memory_bytes=None)) if run.recipe is None else ""
    parts = [_missing(nearest), cards]
    return "; ".join(part for part in parts if part)


class _Nearest(NamedTuple):
    """The candidate that needs the least memory, and what it is called."""

    spec: Spec
    estimate: Estimate
    name: str


def _smallest(space: Space) -> _Nearest:
    """The candidate that needs the least memory of each GPU, exactly: what a bound rules out is not estimated."""
    spec = space.subject.spec
    bounds = Bounds(spec.seq_len, states_deepspeed(space.subject.run))
    groups = sorted(((bounds.group(spec, group)[0], group) for group in space.groups), key=lambda item: item[0])
    best: _Nearest | None = None
    for bound, group in groups:
        if best is not None and bound >= best[1].peak.high:
            break
        for candidate, changed in _least_tokens(space, group):
            result = estimate(changed)
            if best is None or result.peak.high < best[1].peak.high:
                best = _Nearest(changed, result, candidate.name)
    assert best is not None
    return best


def _least_tokens(space: Space, group: Sequence[Option]) -> list[tuple[Candidate, Spec]]:
    """The members of a group that others can only exceed: those of the fewest tokens, with and without accumulation."""
    subject = space.subject
    launched = states_deepspeed(subject.run)
    spec = subject.spec

    def value(candidate: Candidate, name: str) -> Any:
        return candidate.changes.get(name, getattr(spec, name))

    members = list(space.members(group))
    found: list[Candidate] = []
    for accumulates in (False, True):
        some = [each for each in members if (value(each, "gradient_accumulation_steps") > 1) is accumulates]
        tokens = [value(each, "micro_batch_size") * value(each, "seq_len") for each in some]
        found += [each for each, count in zip(some, tokens, strict=True) if count == min(tokens)]
    return [(each, changed_spec(spec, each.changes, launched=launched)) for each in found]


def _missing(nearest: _Nearest) -> str:
    least = nearest.estimate
    capacity = least.capacity_bytes or 0
    likely, high, have = least.peak.likely / GIB, least.peak.high / GIB, capacity / GIB
    if likely > have:
        what = f"the least that it takes is {likely:.1f} GiB on each GPU, {likely - have:.1f} GiB more than {have:.1f}"
        return f"{what} ({nearest.name})"
    if high > have:
        what = f"the least that it takes is {likely:.1f} GiB on each GPU, and up to {high:.1f} of {have:.1f}"
        return f"{what} ({nearest.name})"
    if least.host_capacity_bytes is not None and least.host.peak > least.host_capacity_bytes:
        lacking = (least.host.peak - least.host_capacity_bytes) / GIB
        return f"the GPUs would do ({nearest.name}), but the host lacks {lacking:.0f} GiB for the offload"
    return ""


def _cards(spec: Spec) -> str:
    """How many such GPUs would do with ZeRO, else how many of the next larger kind; nothing where none would."""
    if spec.engine == "fsdp":
        return ""
    count = _fewest(spec)
    if count is not None:
        return f"{count} such GPUs with ZeRO-3 would do"
    have = (spec.capacity_bytes or 0) / GIB
    for name, usable in _USABLE_GIB.items():
        if usable <= have:
            continue
        count = _fewest(replace(spec, gpu=None, capacity_bytes=int(usable * GIB), gpus=0))
        if count is not None:
            return f"more such GPUs do not help; {count} GPU{'s' * (count > 1)} of {name} GB with ZeRO-3 would do"
    return ""


def _fewest(spec: Spec) -> int | None:
    """The fewest GPUs above the spec's own on which ZeRO-3 fits without offload."""
    rung = {"engine": "deepspeed", **dict(zip(FIELDS, LADDER[1][1], strict=True))}
    precision = spec.mixed_precision if spec.mixed_precision != "no" else "bf16"
    for count in _COUNTS:
        if count > spec.gpus:
            more = replace(spec, gpus=count, nodes=max(1, count // 8))
            if suffices(estimate(changed_spec(more, {**rung, "mixed_precision": precision}))):
                return count
    return None
