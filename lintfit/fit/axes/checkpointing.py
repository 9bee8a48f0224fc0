"""Gradient checkpointing: activations are computed a second time instead of kept."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.fit.options import Option, Subject


def options(subject: Subject) -> Iterator[Option]:
    if not subject.spec.gradient_checkpointing:
        yield Option("gradient checkpointing", {"gradient_checkpointing": True})
    elif not subject.recomputes:
        yield Option("no gradient checkpointing", {"gradient_checkpointing": False}, counts=1 + subject.taking_back)
