"""The rule deepspeed-without-precision: see its page."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.context import Report, RunContext
from lintfit.checks.runs import change, stated_at
from lintfit.checks.script_calls import mentions
from lintfit.findings import Applicability, Fix, Severity
from lintfit.memory.result import Verdict
from lintfit.run.model import Run
from lintfit.settings import Place

_SMALL = 500_000_000
"""Parameters below which training in fp32 is nobody's problem."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    stage = run.value("zero_stage")
    if run.script is None or not run.script.facts.trains or run.value("engine") != "deepspeed":
        return
    if stage not in (1, 2, 3) or run.value("mixed_precision") != "no" or "mixed_precision" in run.doubtful:
        return
    if _on_purpose(run) or mentions(run, "autocast", "Float8", "fp8", "cuda.amp", "apex"):
        return
    place = _place(run)
    severity = _severity(context)
    if place is None or severity is None:
        return
    yield Report(
        place,
        f"ZeRO-{stage} with neither bf16 nor fp16: the engine keeps weights, gradients and states in the dtype that "
        "the model was loaded in, and computes in it",
        severity=severity,
        fix=_fix(run),
        help='write "bf16": {"enabled": "auto"} and pass bf16=True (or "enabled": true under deepspeed.initialize)',
    )


def _on_purpose(run: Run) -> bool:
    """A file that says fp32 in its name, a study of it, or a model too small to care."""
    if any(word in document.path.name.lower() for document in run.documents for word in ("fp32", "float32")):
        return True
    return run.facts is not None and run.facts.parameters < _SMALL


def _place(run: Run) -> Place | None:
    place = stated_at(run, "mixed_precision")
    if place is not None:
        return place
    return stated_at(run, "zero_stage")


def _severity(context: RunContext) -> Severity | None:
    """Where memory is short and the model is in fp32, ``full-precision-training`` reports it with its numbers."""
    if context.verdict not in (Verdict.TIGHT, Verdict.DOES_NOT_FIT):
        return Severity.INFO
    spec = context.run.spec
    return None if spec is not None and spec.weights_dtype == "fp32" else Severity.WARNING


def _fix(run: Run) -> Fix | None:
    gpu = run.hardware.gpu
    if gpu is None or gpu.native_bf16 is None:
        return None
    half = "bf16" if gpu.native_bf16 else "fp16"
    return change(run, f"train in {half}", Applicability.UNSAFE, {"mixed_precision": half})
