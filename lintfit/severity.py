"""How bad a finding is."""

from __future__ import annotations

from enum import IntEnum


class Severity(IntEnum):
    """How bad a finding is; ordered, so that thresholds compare."""

    INFO = 0
    WARNING = 1
    ERROR = 2

    def __str__(self) -> str:
        return self.name.lower()
