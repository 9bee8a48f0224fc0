"""How bad a finding is."""

from __future__ import annotations

from enum import IntEnum

from lintfit.frozen import frozen


class Severity(IntEnum):
    """How bad a finding is; ordered, so that thresholds compare."""

    INFO = 0
    WARNING = 1
    ERROR = 2

    def __str__(self) -> str:
        return self.name.lower()


@frozen
class FailOn:
    """What makes the exit status 1: findings from ``severity`` on; with ``unknown`` also a run without a verdict and a
    file that was not understood."""

    severity: Severity
    unknown: bool = False
