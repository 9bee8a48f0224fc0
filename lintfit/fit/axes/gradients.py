"""Gradients that a loop of the script's own holds behind the optimizer's step, let go of: the same updates."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.fit.options import Option, Subject


def options(subject: Subject) -> Iterator[Option]:
    """Only where they stay, and nothing else shards or drops them."""
    spec = subject.spec
    if spec.zero_grad != "step" and spec.engine in ("single", "ddp"):
        yield Option("gradients freed behind the step", {"zero_grad": "step"})
