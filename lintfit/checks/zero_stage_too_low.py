from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import cards, change, fits, most_states, place_of, states_at, strategy
from lintfit.checks.helpers.wording import rough
from lintfit.findings.model import Applicability, Fix
from lintfit.memory.result import Estimate, Verdict

_REMEDIES: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("ZeRO-3", {"zero_stage": 3}),
    ("ZeRO-2 with the optimizer offloaded", {"zero_stage": 2, "offload_optimizer": "cpu"}),
    ("ZeRO-3 with the optimizer offloaded", {"zero_stage": 3, "offload_optimizer": "cpu"}),
)


def check_run(context: RunContext) -> Iterator[Report]:
    spec, estimate = context.run.spec, context.estimate
    if spec is None or estimate is None or context.verdict_of_training is not Verdict.DOES_NOT_FIT:
        return
    if (
        spec.engine not in ("deepspeed", "ddp")
        or (spec.engine == "ddp" and context.run.unlaunched)
        or spec.data_parallel < 2
        or (spec.engine == "deepspeed" and spec.zero_stage == 3)
    ):
        return
    moment = most_states(estimate)
    assert estimate.capacity_bytes is not None
    if moment is None or states_at(moment) <= estimate.capacity_bytes:
        return
    tried = [(name, changes, context.what_if(engine="deepspeed", **changes)) for name, changes in _REMEDIES]
    peaks = ", ".join(_peak(name, result) for name, _, result in tried if result is not None and _helps(result))
    if not peaks:
        return  # no stage is enough by itself: does-not-fit says so
    yield Report(
        place_of(context.run, "zero_stage"),
        f"{strategy(spec)} on {cards(context.run)} keeps more of the model on each GPU than one has room for; the peak "
        f"with {peaks}",
        fix=_fix(context, tried),
        help="shard more, or offload the optimizer",
    )


def _helps(result: Estimate) -> bool:
    """Whether a remedy is one by itself: where it likely does not fit either, other things decide, too."""
    return result.capacity_bytes is None or result.peak.likely <= result.capacity_bytes


def _peak(name: str, result: Estimate) -> str:
    verdict = {Verdict.FITS: " (fits)", Verdict.TIGHT: " (tight)"}.get(result.verdict, "")
    return f"{name} is about {rough(result.peak.likely)}{verdict}"


def _fix(context: RunContext, tried: list[tuple[str, Mapping[str, Any], Estimate | None]]) -> Fix | None:
    spec = context.run.spec
    if spec is None or spec.engine != "deepspeed":
        return None
    for name, changes, result in tried:
        host_is_known = spec.host_memory_bytes is not None or "offload_optimizer" not in changes
        keeps_offload = spec.offload_optimizer == "none" or "offload_optimizer" in changes
        if fits(result) and host_is_known and keeps_offload:
            return change(context.run, f"use {name}", Applicability.SAFE, changes)
    return None
