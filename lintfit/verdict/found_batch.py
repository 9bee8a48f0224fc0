"""A micro-batch that the Trainer itself lowers until it fits (``auto_find_batch_size``)."""

from __future__ import annotations

from lintfit.frozen import replace
from lintfit.memory import estimate
from lintfit.memory.result import Verdict
from lintfit.run.model import Run
from lintfit.settings.model import Provenance, Setting


def with_found_batch(run: Run) -> Run:
    """The run as it trains after its first steps ran out of memory; the same where it asks for no search.

    accelerate lowers the batch size after each ``OutOfMemoryError`` (1.15 ``find_executable_batch_size``: by a tenth,
    before 1.0 by half); halves are tried here.
    """
    asked = run.training.argument("auto_find_batch_size") if run.training is not None else None
    stated = run.settings.get("micro_batch_size")
    if asked is None or asked.value is not True or run.spec is None or stated is None or run.hardware.gpus is None:
        return run
    spec = run.spec
    while spec.micro_batch_size > 1 and estimate(spec).verdict is Verdict.DOES_NOT_FIT:
        spec = replace(spec, micro_batch_size=spec.micro_batch_size // 2)
    if spec is run.spec:
        return run
    why = f"auto_find_batch_size lowers {run.spec.micro_batch_size} until it fits"
    found = Setting("micro_batch_size", spec.micro_batch_size, Provenance("derived", why), (stated,))
    return replace(run, spec=spec, settings={**run.settings, "micro_batch_size": found})
