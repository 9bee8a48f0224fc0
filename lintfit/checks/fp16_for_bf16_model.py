"""The rule fp16-for-bf16-model: see its page."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.context import Report, RunContext
from lintfit.checks.runs import stated_at
from lintfit.findings import Severity
from lintfit.run.model import Run


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.value("mixed_precision") != "fp16" or run.facts is None or run.facts.checkpoint_dtype != "bf16":
        return
    if run.script is not None and not run.script.facts.trains:
        return
    place = stated_at(run, "mixed_precision")
    if place is None or _adapters_in_fp32(run):
        return
    severity = _severity(run)
    yield Report(
        place,
        f"{run.facts.name} was trained in bf16, and fp16 is on: activations beyond 65,504 overflow, and the loss scale "
        "falls until the run stops (DeepSpeed: Current loss scale already at minimum)",
        severity=severity,
        help="this card has no bf16: watch the loss scale, or train adapters in fp32"
        if severity is Severity.INFO and run.hardware.gpu is not None
        else "train in bf16 (cards of compute capability 8.0 and up)",
    )


def _severity(run: Run) -> Severity:
    """Without bf16 there is no choice; an unknown card may be one of those."""
    gpu = run.hardware.gpu
    return Severity.WARNING if gpu is not None and gpu.native_bf16 else Severity.INFO


def _adapters_in_fp32(run: Run) -> bool:
    return bool(run.value("method") == "lora" and run.value("lora_dtype", "fp32") == "fp32")
