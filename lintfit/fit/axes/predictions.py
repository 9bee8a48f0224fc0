"""Logits of the evaluation that go to the host after every batch, or are given up: no update changes by it."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.fit.options import Effect, Option, Subject
from lintfit.memory.evaluation.kept import gathered_at_least


def options(subject: Subject) -> Iterator[Option]:
    """Only where they are kept. Metrics are given up only where one sample of every rank is too much."""
    spec = subject.spec
    if spec.evaluation is None or spec.evaluation.predictions != "kept" or spec.evaluation.generates:
        return
    if spec.evaluation.accumulation_steps != 1:
        yield Option("evaluation logits to the host", {"eval_accumulation_steps": 1})
    if gathered_at_least(spec) > (spec.capacity_bytes or 0):
        note = "the evaluation gives the loss alone: compute_metrics is not called"
        yield Option("no evaluation logits", {"eval_predictions": "none"}, Effect.NUMERICS, note)
