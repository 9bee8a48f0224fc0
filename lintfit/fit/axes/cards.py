"""More GPUs of the same kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lintfit.fit.options import Effect, Option, Subject
from lintfit.memory.spec import Spec

MOST = 4
"""Times as many GPUs as the run uses, and no more."""
PER_NODE = 8
"""GPUs of a machine, where the run does not say otherwise."""


def options(subject: Subject) -> Iterator[Option]:
    """Twice and four times as many, where accumulation can make up for it.

    GPUs that lintfit's config counts and the launch leaves alone may be somebody else's (a vLLM server's): they are no
    exception.
    """
    spec = subject.spec
    if subject.run.recipe is not None:
        return
    samples, others = spec.effective_batch, spec.gpus // spec.data_parallel
    factor = 2
    while factor <= MOST:
        gpus = factor * spec.gpus
        factor *= 2
        if samples % (gpus // others):
            continue
        changes: dict[str, Any] = {"gpus": gpus}
        if spec.engine == "single":
            changes["engine"] = "ddp"
        nodes = nodes_of(spec, gpus)
        if nodes != spec.nodes:
            changes["nodes"] = nodes
        note = f"{gpus - spec.gpus} more GPUs, the same samples in a step"
        yield Option(f"{gpus} GPUs", changes, Effect.HARDWARE, note, kind="more GPUs")


def nodes_of(spec: Spec, gpus: int) -> int:
    """Machines for so many GPUs, of the size that the run's have."""
    per_node = max(PER_NODE, spec.gpus // spec.nodes)
    return -(-gpus // per_node)
