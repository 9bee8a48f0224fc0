"""The shared memory model: pure functions from a spec to an estimate. No I/O, no torch.

The parts are imported when the first estimate is made: what only handles estimates loads none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lintfit.memory.result import Estimate
    from lintfit.memory.spec import Spec

__all__ = ["estimate"]


def estimate(spec: Spec) -> Estimate:
    """The memory of one rank of a run, moment by moment in bytes, and whether it fits its GPU."""
    from lintfit.memory.estimator import estimate as of_spec

    return of_spec(spec)
