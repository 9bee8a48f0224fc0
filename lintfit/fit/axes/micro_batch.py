"""Smaller micro-batches with more accumulation, and larger ones with less: a step sees the same samples."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.fit.divisors import divisors
from lintfit.fit.options import Option, Subject
from lintfit.run.generation import fills_groups, ranks_known


def options(subject: Subject) -> Iterator[Option]:
    """Every size that divides what one rank sees in a step; accumulation follows (``space.combined``).

    GRPO's groups must divide the generation batch, which this leaves as it is, too; the micro-batches of an older TRL
    hold whole groups on any number of ranks, where no launch says how many there are.
    """
    spec, ranks = subject.spec, ranks_known(subject.run, subject.spec)
    samples = spec.micro_batch_size * spec.gradient_accumulation_steps
    for size in divisors(samples):
        if size != spec.micro_batch_size and fills_groups(subject.run, size, ranks):
            larger = size > spec.micro_batch_size
            counts, grows = 1 + subject.taking_back * larger, larger and subject.recomputes
            yield Option(f"micro-batch {size}", {"micro_batch_size": size}, counts=counts, grows=grows)
