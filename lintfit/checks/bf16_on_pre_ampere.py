from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.readers import older
from lintfit.checks.helpers.runs import place_of
from lintfit.checks.helpers.wording import capability
from lintfit.errors import CannotWrite
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.run.model import Run
from lintfit.run.precision_switch import swapped

_EMULATES = "2.3"
"""The first torch whose ``torch.cuda.is_bf16_supported`` counts emulation (2.2.2 says no on a V100, pytorch#124996)."""


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    gpu = run.hardware.gpu
    if gpu is None or gpu.native_bf16 is not False or run.value("mixed_precision") != "bf16":
        return
    stops = older((run,), "torch", _EMULATES) is True
    how = (
        'training stops with "Your setup doesn\'t support bf16/gpu"' if stops else "torch emulates it, slower than fp32"
    )
    yield Report(
        place_of(run, "mixed_precision", "bf16"),
        f"{gpu.name} (compute capability {capability(gpu)}) has no bf16: {how}",
        severity=Severity.ERROR if stops else Severity.WARNING,
        fix=_fp16(run),
        help="use fp16, and watch the loss scale: models trained in bf16 may overflow",
    )


def _fp16(run: Run) -> Fix | None:
    """fp16 in the place of bf16 in all that says so; None where a part of it cannot be changed."""
    try:
        edits = swapped(run, "fp16")
    except CannotWrite:
        return None
    if not edits:
        return None
    return Fix("train in fp16", Applicability.UNSAFE, edits, {"mixed_precision": "fp16"})
