"""The versions of libraries that formulas go by."""

from __future__ import annotations

from lintfit.memory.spec import Spec

NEWEST_TRANSFORMERS = (5, 23)

GROUPED_EXPERTS = (5, 0)
"""The first transformers version that holds all experts as one parameter and runs them as one grouped product."""


def parse_version(text: str | None, newest: tuple[int, int]) -> tuple[int, int]:
    """``(major, minor)`` of a version string; the newest known where absent or not a version."""
    if not text:
        return newest
    parts = text.split(".")
    try:
        return int(parts[0]), int(parts[1]) if len(parts) > 1 else 0
    except ValueError:
        return newest


def transformers_version(spec: Spec) -> tuple[int, int]:
    """Transformers' version, the newest known where it is not stated."""
    return parse_version(spec.versions.get("transformers"), NEWEST_TRANSFORMERS)
