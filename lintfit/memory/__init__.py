"""The shared memory model: pure functions from a spec to an estimate. No I/O, no torch."""

from lintfit.memory.estimate import estimate

__all__ = ["estimate"]
