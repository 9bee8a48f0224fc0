"""The longest sample of a run whose samples differ: what it takes over one of the mean length.

Batches are padded to their longest sample, so that ``seq_len``, the longest, decides the peak, in whichever step it
comes; the allocator keeps what it took from then on.
"""

from __future__ import annotations

from collections.abc import Callable

from lintfit.frozen import replace
from lintfit.memory.result import Estimate
from lintfit.memory.spec import GIB, Spec


def line(spec: Spec, found: Estimate, estimated: Callable[[Spec], Estimate]) -> str:
    """What an estimate says of it; nothing where the mean is not stated, or is the longest."""
    mean = spec.mean_seq_len
    if mean is None or mean >= spec.seq_len:
        return ""
    usual = estimated(replace(spec, seq_len=mean, mean_seq_len=None)).peak.likely
    most = found.peak.likely
    there = found.capacity_bytes
    dies = there is not None and usual <= there < most
    ends = (
        "steps without it fit, and the run dies at the first that has it: cut the samples, or drop the longest"
        if dies
        else "it comes in whichever step has the longest sample, and the allocator keeps it from then on: no leak"
    )
    return (
        f"longest sample: {spec.seq_len:,} tokens take {most / GIB:.1f} GiB, the mean of {mean:,} takes "
        f"{usual / GIB:.1f}; {ends}"
    )
