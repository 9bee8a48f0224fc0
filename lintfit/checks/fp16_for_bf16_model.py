from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import stated_at
from lintfit.errors import CannotWrite
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.frozen import word_set
from lintfit.run.called import model_name
from lintfit.run.model import Run
from lintfit.run.precision_switch import swapped

_OVERFLOWS = word_set("gemma3 gemma3n gemma4 glm4_moe glm4_moe_lite gpt_oss qwen3_5 qwen3_moe")
"""Model types that fp16 is known to break (unsloth_zoo 2026.10.9 ``model_lists.py:FORCE_FLOAT32``); others may get
through."""

DECIDED_BY = ("mixed_precision", "model")


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.value("mixed_precision") != "fp16" or run.facts is None or run.facts.checkpoint_dtype != "bf16":
        return
    if run.training is not None and not run.training.trains:
        return
    place = stated_at(run, "mixed_precision")
    if place is None or (run.value("method") == "lora" and run.value("lora_dtype", "fp32") == "fp32"):
        return
    # Without bf16 there is no choice; an unknown GPU may be one of those.
    full = run.value("method") != "lora"  # adapters beside a frozen base: many public runs get through so
    chosen = run.hardware.gpu is not None and run.hardware.gpu.native_bf16 is True
    risky = _overflows(run.facts.model_type)
    severity = Severity.WARNING if full and chosen and risky else Severity.INFO
    without = run.hardware.gpu is not None and run.hardware.gpu.native_bf16 is False
    yield Report(
        place,
        f"{model_name(run)} was trained in bf16, and fp16 is on: an activation beyond 65,504 overflows: {_then(run)}",
        severity=severity,
        fix=_fix(run) if severity is Severity.WARNING else None,
        help="this GPU has no bf16: watch the loss scale, or train adapters in fp32"
        if without
        else "train in bf16 (GPUs of compute capability 8.0 and up)",
    )


def _overflows(model_type: str) -> bool:
    return model_type.removesuffix("_text") in _OVERFLOWS


def _then(run: Run) -> str:
    """What comes of an overflow: DeepSpeed stops at the smallest scale, torch's GradScaler goes on without a step."""
    if run.value("engine") == "deepspeed":
        return "the loss scale falls, at last until the run stops (DeepSpeed: Current loss scale already at minimum)"
    return "steps are skipped while the loss scale falls"


def _fix(run: Run) -> Fix | None:
    """bf16 in the place of fp16 in every file that says so; None where one of them cannot be changed."""
    try:
        edits = swapped(run, "bf16")
    except CannotWrite:
        return None
    return Fix("train in bf16", Applicability.UNSAFE, edits, {"mixed_precision": "bf16"}) if edits else None
