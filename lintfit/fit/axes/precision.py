"""Mixed precision in the place of fp32, and fp16 in the place of a bf16 that the GPUs do not have."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.errors import CannotWrite
from lintfit.fit.options import Effect, Option, Subject, half
from lintfit.run.model import Run


def options(subject: Subject) -> Iterator[Option]:
    spec = subject.spec
    if spec.mixed_precision == "bf16" and half(subject) == "fp16" and _can_be_swapped(subject.run):
        note = "the GPUs have no bf16, which transformers refuses or torch emulates: fp16 scales its loss"
        yield Option("fp16", {"mixed_precision": "fp16"}, Effect.NUMERICS, note, must=True)
        return
    if spec.mixed_precision != "no" or spec.weights_dtype != "fp32":
        return
    dtype = half(subject)
    note = f"matrix products are computed in {dtype}"
    yield Option(f"{dtype} training", {"mixed_precision": dtype}, Effect.NUMERICS, note)


def _can_be_swapped(run: Run) -> bool:
    """Whether every word for bf16 has one for fp16 in its place."""
    from lintfit.run.precision_switch import swapped

    try:
        return bool(swapped(run, "fp16"))
    except CannotWrite:
        return False
