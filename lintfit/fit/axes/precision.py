"""Mixed precision in the place of fp32."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.fit.options import Effect, Option, Subject, half


def options(subject: Subject) -> Iterator[Option]:
    spec = subject.spec
    if spec.mixed_precision != "no" or spec.weights_dtype != "fp32":
        return
    dtype = half(subject)
    note = f"matrix products are computed in {dtype}"
    yield Option(f"{dtype} training", {"mixed_precision": dtype}, Effect.NUMERICS, note)
