"""The rule large-comm-buckets: see its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import breaks_or_strains, fits, most, stated_at
from lintfit.checks.helpers.trees import assigned
from lintfit.checks.helpers.wording import gib, listed
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.memory.engines.zero_config import zero_config
from lintfit.memory.result import Estimate
from lintfit.memory.spec import GIB, Spec
from lintfit.run.model import Run

_SMALL_CARD = 24 * GIB
_SHARE = 0.08
"""Share of the GPU that smaller buckets must give back to be mentioned."""
_SMALLER: Mapping[str, int] = {
    "reduce_bucket_size": 50_000_000,
    "allgather_bucket_size": 50_000_000,
    "stage3_max_live_parameters": 100_000_000,
    "stage3_max_reuse_distance": 100_000_000,
}
"""Elements that are plenty on such a GPU (a tenth of DeepSpeed's defaults)."""


def check_run(context: RunContext) -> Iterator[Report]:
    run, spec, estimate = context.run, context.run.spec, context.estimate
    if spec is None or estimate is None or estimate.capacity_bytes is None or run.deepspeed is None:
        return
    if spec.engine != "deepspeed" or spec.zero_stage == 0 or estimate.capacity_bytes > _SMALL_CARD:
        return
    severity = breaks_or_strains(context)
    changes = _changes(spec)
    if severity is None or not changes:
        return
    smaller = context.what_if(deepspeed_config=_with(spec.deepspeed_config, changes))
    if smaller is None or not _worth_it(estimate, smaller):
        return
    now, then = most(estimate, *_PARTS), most(smaller, *_PARTS)
    yield Report(
        stated_at(run, *changes, "zero_stage") or run.deepspeed.start,
        f"{listed(changes)} {'is' if len(changes) == 1 else 'are'} large for this GPU: ZeRO's buffers and gathered "
        f"parameters take {gib(now)}, with smaller ones {gib(then)}",
        severity=Severity.ERROR if fits(smaller) and severity is Severity.ERROR else Severity.WARNING,
        fix=_fix(run, changes),
        help='write 5e7 for the buckets, or "auto" under transformers and accelerate',
    )


_PARTS = ("communication_buffers",)


def _worth_it(now: Estimate, then: Estimate) -> bool:
    saved = most(now, *_PARTS) - most(then, *_PARTS)
    return saved > _SHARE * (now.capacity_bytes or 0) and then.peak.likely < now.peak.likely


def _changes(spec: Spec) -> dict[str, int]:
    """The keys whose values, stated or by default, are larger than what is plenty here."""
    config = zero_config(spec)
    section = spec.deepspeed_config.get("zero_optimization")
    stated = section if isinstance(section, Mapping) else {}
    current = {"reduce_bucket_size": config.reduce_bucket}
    if spec.zero_stage < 3:
        current["allgather_bucket_size"] = int(stated.get("allgather_bucket_size", 500_000_000) or 0)
    else:
        current["stage3_max_live_parameters"] = config.max_live
        current["stage3_max_reuse_distance"] = config.max_reuse_distance
    if config.reduce_bucket >= spec.facts.parameters:
        return {}
    return {name: _SMALLER[name] for name, value in current.items() if value >= 4 * _SMALLER[name]}


def _with(config: Mapping[str, Any], changes: Mapping[str, int]) -> dict[str, Any]:
    section = config.get("zero_optimization")
    return {**config, "zero_optimization": {**(section if isinstance(section, Mapping) else {}), **changes}}


def _fix(run: Run, changes: Mapping[str, int]) -> Fix | None:
    assert run.deepspeed is not None
    return assigned(
        run.deepspeed.document,
        "use smaller buckets",
        Applicability.SAFE,
        {("zero_optimization", name): value for name, value in changes.items()},
    )
