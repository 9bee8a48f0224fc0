from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import cards, change, fits, most_states, of_cause, place_of, states_at, strategy
from lintfit.checks.helpers.wording import rough
from lintfit.checks.llamafactory_refuses import refuses_stage_3
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.memory.result import Estimate, Verdict

_REMEDIES: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("ZeRO-3", {"zero_stage": 3}),
    ("ZeRO-2 with the optimizer offloaded", {"zero_stage": 2, "offload_optimizer": "cpu"}),
    ("ZeRO-3 with the optimizer offloaded", {"zero_stage": 3, "offload_optimizer": "cpu"}),
)

Tried = Sequence[tuple[str, Mapping[str, Any], Estimate | None]]


def check_run(context: RunContext) -> Iterator[Report]:
    spec, estimate = context.run.spec, context.estimate
    if spec is None or estimate is None or context.verdict_of_training is not Verdict.DOES_NOT_FIT:
        return
    if (
        context.run.engine_open
        or spec.engine not in ("deepspeed", "ddp")
        or (spec.engine == "ddp" and context.run.unlaunched)
        or spec.data_parallel < 2
        or (spec.engine == "deepspeed" and spec.zero_stage == 3)
    ):
        return
    assert estimate.capacity_bytes is not None
    if _states(estimate) <= estimate.capacity_bytes:
        return
    most = 2 if refuses_stage_3(context.run) else 3
    remedies = [(name, changes) for name, changes in _REMEDIES if changes["zero_stage"] <= most]
    tried = [(name, changes, context.what_if(engine="deepspeed", **changes)) for name, changes in remedies]
    if all(result is None or _states(result) > estimate.capacity_bytes for _, _, result in tried):
        return  # no stage that the run can have holds it: does-not-fit says so
    whole = not context.run.doubtful and not estimate.not_modelled
    peaks = ", ".join(_peak(name, result) for name, result in _helping(tried)) if whole else ""
    alone = next((result for _, result in _helping(tried)), None)
    yield Report(
        place_of(context.run, "zero_stage"),
        f"{strategy(spec)} on {cards(context.run)} keeps more of the model on each GPU than one has room for"
        + (f"; the peak with {peaks}" if peaks else ""),
        severity=of_cause(context, alone) if fits(alone) and _has_the_choice(context) else Severity.INFO,
        fix=_fix(context, tried),
        help="shard more, or offload the optimizer",
    )


def _has_the_choice(context: RunContext) -> bool:
    """Whether nothing speaks against sharding more: LLaMA-Factory takes it, and no vLLM beside the trainer keeps the
    weights whole."""
    generation = context.run.spec.generation if context.run.spec is not None else None
    colocated = generation is not None and generation.vllm_gpu_memory_utilization > 0
    return not colocated and not refuses_stage_3(context.run)


def _states(estimate: Estimate) -> int:
    moment = most_states(estimate)
    return states_at(moment) if moment is not None else 0


def _helping(tried: Tried) -> Iterator[tuple[str, Estimate]]:
    """The remedies that do by themselves, each that takes less than those before: where one likely does not fit
    either, other things decide, too."""
    least = None
    for name, _, result in tried:
        if result is None or result.verdict not in (Verdict.FITS, Verdict.TIGHT):
            continue
        peak = result.peak.likely
        if peak <= (result.capacity_bytes or peak) and (least is None or peak < least):
            least = peak
            yield name, result


def _peak(name: str, result: Estimate) -> str:
    verdict = {Verdict.FITS: " (fits)", Verdict.TIGHT: " (tight)"}.get(result.verdict, "")
    return f"{name} is about {rough(result.peak.likely)}{verdict}"


def _fix(context: RunContext, tried: Tried) -> Fix | None:
    spec = context.run.spec
    if spec is None or spec.engine != "deepspeed":
        return None
    for name, changes, result in tried:
        host_is_known = spec.host_memory_bytes is not None or "offload_optimizer" not in changes
        keeps_offload = spec.offload_optimizer == "none" or "offload_optimizer" in changes
        if fits(result) and host_is_known and keeps_offload:
            return change(context.run, f"use {name}", Applicability.SAFE, changes)
    return None
