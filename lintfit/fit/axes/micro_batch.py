"""Smaller micro-batches with more accumulation, and larger ones with less: a step sees the same samples."""

from __future__ import annotations

from collections.abc import Iterator
from math import log2

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
            counts, grows = 1 + subject.taking_back * larger + _far(subject, size), larger and subject.recomputes
            yield Option(f"micro-batch {size}", {"micro_batch_size": size}, counts=counts, grows=grows)


_FURTHEST = 8
"""How many times as many micro-batches a step may have before one would rather recompute."""


def _far(subject: Subject, size: int) -> int:
    """As how many changes more a micro-batch ranks that is a small part of what it was, in a run that keeps all its
    activations: kernels of few samples leave the GPU idle, and recomputing lets it keep more of them."""
    spec = subject.spec
    if spec.gradient_checkpointing is not False or not subject.recomputes or size * _FURTHEST >= spec.micro_batch_size:
        return 0
    return round(_A_HALF * log2(spec.micro_batch_size / size))


_A_HALF = 2
"""As how many changes more each halving ranks then."""
