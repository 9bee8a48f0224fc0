"""Versions as tuples, so that they compare."""

from __future__ import annotations

import re

from lintfit.findings import Severity


def numbers(version: str) -> tuple[int, ...]:
    """``"0.17.1+cu12"`` as ``(0, 17, 1)``."""
    found = re.match(r"\d+(?:\.\d+)*", version.strip())
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def lower(severity: Severity) -> Severity:
    """One step milder: what a finding is worth where the version that would settle it is not known."""
    return Severity(max(severity - 1, Severity.INFO))
