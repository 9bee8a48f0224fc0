"""A reference model of its own beside adapters, let go of: the model with its adapters switched off is one."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.fit.options import Effect, Option, Subject


def options(subject: Subject) -> Iterator[Option]:
    """Only beside adapters, where somebody must have handed it over. It may be another checkpoint than the base."""
    spec = subject.spec
    if spec.reference_model and spec.method == "lora":
        note = "the reference is the base of the adapters: the same only where both are one checkpoint"
        yield Option("no second reference model", {"reference_model": False}, Effect.NUMERICS, note)
