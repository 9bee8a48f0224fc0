"""Smaller batches of the evaluation, and logits that go to the host or are not kept: no update changes."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.fit.options import Effect, Option, Subject


def options(subject: Subject) -> Iterator[Option]:
    """The batches below the run's own that are powers of two times smaller; what becomes of the logits.

    Only where the evaluation is known, and takes another batch than the training or keeps something of it.
    """
    spec = subject.spec
    evaluation = spec.evaluation
    if evaluation is None or evaluation.batch_size == 0:
        return
    for size in smaller(evaluation.batch_size):
        yield Option(f"evaluation batch {size}", {"eval_batch_size": size})
    if evaluation.predictions != "kept" or evaluation.generates:
        return
    if evaluation.accumulation_steps != 1:
        yield Option("evaluation logits to the host", {"eval_accumulation_steps": 1})
    note = "the evaluation gives the loss alone: compute_metrics is not called"
    yield Option("no evaluation logits", {"eval_predictions": "none"}, Effect.NUMERICS, note)


def smaller(batch: int) -> Iterator[int]:
    """Half, a quarter, … of a batch, down to one sequence."""
    while batch > 1:
        batch //= 2
        yield batch
