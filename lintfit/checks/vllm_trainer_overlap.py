"""The rule vllm-trainer-overlap: see its page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lintfit.checks.context import Report, RunContext
from lintfit.checks.runs import change, fits, place_of
from lintfit.checks.wording import gib, peak
from lintfit.findings import Applicability, Fix, Severity
from lintfit.memory.result import Verdict

_SHARES = (0.3, 0.25, 0.2, 0.15, 0.1)
"""Shares of the card to try for vLLM, TRL's own default first."""


def check_run(context: RunContext) -> Iterator[Report]:
    """vLLM on the trainer's own cards: what it reserves is missing there."""
    spec, estimate = context.run.spec, context.estimate
    if spec is None or estimate is None or spec.generation is None or spec.capacity_bytes is None:
        return
    share = spec.generation.vllm_gpu_memory_utilization
    if not share or context.verdict not in (Verdict.DOES_NOT_FIT, Verdict.TIGHT):
        return
    yield Report(
        place_of(context.run, "vllm_gpu_memory_utilization", "vllm_mode", "use_vllm"),
        f"vLLM on the trainer's cards reserves {share:.0%} of each, {gib(share * spec.capacity_bytes)}: "
        f"the peak with training is {peak(estimate)}",
        severity=Severity.WARNING,
        fix=_smaller(context, share),
        help="lower vllm_gpu_memory_utilization, or give vLLM cards of its own",
    )


def _smaller(context: RunContext, share: float) -> Fix | None:
    spec = context.run.spec
    assert spec is not None and spec.generation is not None
    for smaller in (candidate for candidate in _SHARES if candidate < share):
        generation = replace(spec.generation, vllm_gpu_memory_utilization=smaller)
        if fits(context.what_if(generation=generation)):
            changes = {"vllm_gpu_memory_utilization": smaller}
            return change(context.run, f"leave vLLM {smaller:.0%} of the card", Applicability.SAFE, changes)
    return None
