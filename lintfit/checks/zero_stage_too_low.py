from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import cards, change, fits, place_of, strategy
from lintfit.checks.helpers.wording import gib, of_gib
from lintfit.findings.model import Applicability, Fix
from lintfit.memory.result import Estimate, Verdict

_STATES = ("parameters", "gradients", "optimizer_states", "master_weights")

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
    states = _of_a_step(estimate)
    assert estimate.capacity_bytes is not None
    if states <= estimate.capacity_bytes:
        return
    tried = [(name, changes, context.what_if(engine="deepspeed", **changes)) for name, changes in _REMEDIES]
    peaks = ", ".join(_peak(name, result) for name, _, result in tried if result is not None and _helps(result))
    yield Report(
        place_of(context.run, "zero_stage"),
        f"{strategy(spec)} on {cards(context.run)}: model states alone take "
        f"{of_gib(states, estimate.capacity_bytes)} on each GPU" + (f"; whole peak with {peaks}" if peaks else ""),
        fix=_fix(context, tried),
        help="shard more, or offload the optimizer",
    )


def _of_a_step(estimate: Estimate) -> int:
    """The most bytes of model states from the engine's start on: how a model is loaded is no matter of the stage."""
    moments = (moment for moment in estimate.moments if moment.phase != "load" and not moment.in_evaluation)
    return max((sum(moment.components.get(name, 0) for name in _STATES) for moment in moments), default=0)


def _helps(result: Estimate) -> bool:
    """Whether a remedy is one by itself: where it likely does not fit either, other things decide, too."""
    return result.capacity_bytes is None or result.peak.likely <= result.capacity_bytes


def _peak(name: str, result: Estimate) -> str:
    verdict = {Verdict.FITS: " (fits)", Verdict.TIGHT: " (tight)"}.get(result.verdict, "")
    return f"{name} {gib(result.peak.likely)}{verdict}"


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
