from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import breaks_or_strains, most, of_cause, stated_at
from lintfit.checks.helpers.trees import assigned
from lintfit.checks.helpers.wording import gib, listed
from lintfit.findings.model import Applicability
from lintfit.memory.spec import GIB, Spec

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
    changes = _changes(spec)
    if breaks_or_strains(context) is None or not changes:
        return
    zero = {**_stated(spec), **changes}
    smaller = context.what_if(deepspeed_config={**spec.deepspeed_config, "zero_optimization": zero})
    if smaller is None or smaller.peak.likely >= estimate.peak.likely:
        return
    now, then = most(estimate, "communication_buffers"), most(smaller, "communication_buffers")
    if now - then <= _SHARE * estimate.capacity_bytes:
        return
    yield Report(
        stated_at(run, *changes, "zero_stage") or run.deepspeed.start,
        f"{listed(changes)} {'is' if len(changes) == 1 else 'are'} large for this GPU: ZeRO's buffers and gathered "
        f"parameters take {gib(now)}, with smaller ones {gib(then)}",
        severity=of_cause(context, smaller),
        fix=assigned(
            run.deepspeed.document,
            "use smaller buckets",
            Applicability.SAFE,
            {("zero_optimization", name): value for name, value in changes.items()},
        ),
        help='write 5e7 for the buckets, or "auto" under transformers and accelerate',
    )


def _changes(spec: Spec) -> dict[str, int]:
    """The keys whose values, stated or by default, are larger than what is plenty here."""
    from lintfit.memory.engines.zero_config import zero_config

    config = zero_config(spec)
    current = {"reduce_bucket_size": config.reduce_bucket}
    if spec.zero_stage < 3:
        current["allgather_bucket_size"] = int(_stated(spec).get("allgather_bucket_size", 500_000_000) or 0)
    else:
        current["stage3_max_live_parameters"] = config.max_live
        current["stage3_max_reuse_distance"] = config.max_reuse_distance
    if config.reduce_bucket >= spec.facts.parameters:
        return {}
    return {name: _SMALLER[name] for name, value in current.items() if value >= 4 * _SMALLER[name]}


def _stated(spec: Spec) -> Mapping[str, Any]:
    section = spec.deepspeed_config.get("zero_optimization")
    return section if isinstance(section, Mapping) else {}
