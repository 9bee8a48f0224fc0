"""How a run's memory hangs on the number of its GPUs, where nobody states it."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.frozen import frozen, replace
from lintfit.memory import estimate
from lintfit.memory.result import Estimate, Verdict
from lintfit.memory.spec import Spec

NODE = 8
"""GPUs of a node where nobody states it: the machines with most of them have eight."""

_DOUBLINGS = 11
"""Numbers that are tried: 1, 2, 4, … 1024 GPUs a node. What is sharded so far has nothing left to shard."""


@frozen
class Scaling:
    """The estimates of one run by its number of GPUs, ascending."""

    by_count: tuple[tuple[int, Estimate], ...]

    @property
    def verdict(self) -> Verdict:
        """What holds for every number that was tried; unknown where it is not the same for all."""
        verdicts = {result.verdict for _, result in self.by_count}
        return verdicts.pop() if len(verdicts) == 1 else Verdict.UNKNOWN

    @property
    def fewest(self) -> tuple[int, Estimate] | None:
        """The smallest number from which on the run fits its GPUs and its hosts, with its estimate there."""
        found = None
        for count, result in reversed(self.by_count):
            if result.verdict is not Verdict.FITS or result.host_is_short:
                break
            found = count, result
        return found

    @property
    def least(self) -> tuple[int, Estimate]:
        """The number that needs least memory of one GPU, with its estimate there."""
        return min(self.by_count, key=lambda pair: pair[1].peak.likely)


def scaling(spec: Spec) -> Scaling:
    """One estimate for every number of GPUs that is tried; a GPU must be known."""
    return Scaling(tuple((variant.gpus, estimate(variant)) for variant in _variants(spec)))


def shown(spec: Spec, scaled: Scaling) -> tuple[Spec, Estimate]:
    """What stands for all numbers: one GPU of each node; whole nodes for a run that fits on no number of GPUs."""
    gpus = spec.nodes * (NODE if scaled.verdict is Verdict.DOES_NOT_FIT else 1)
    return replace(spec, gpus=gpus), dict(scaled.by_count)[gpus]


def _variants(spec: Spec) -> Iterator[Spec]:
    for power in range(_DOUBLINGS):
        gpus = 2**power * spec.nodes
        yield replace(spec, gpus=gpus, nodes=max(spec.nodes, gpus // NODE))
