from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import anchor
from lintfit.checks.helpers.wording import gib, of_gib
from lintfit.frozen import replace
from lintfit.memory.result import Estimate, Verdict
from lintfit.memory.spec import Spec

if TYPE_CHECKING:
    from lintfit.memory.engines.states import States


def check_run(context: RunContext) -> Iterator[Report]:
    spec, fresh = context.run.spec, context.estimate
    if spec is None or fresh is None or spec.resumes or not spec.saves:
        return
    if context.verdict not in (Verdict.FITS, Verdict.TIGHT) or fresh.host_is_short:
        return
    from lintfit.memory.engines.model_states import states

    going_on = states(replace(spec, resumes=True))
    message = _on_gpu(spec, fresh, going_on) or _on_host(fresh, going_on)
    if message is None:
        return
    yield Report(
        anchor(context.run),
        message,
        help="save_only_model=True resumes without the optimizer's states, "
        + ("from a sharded checkpoint each rank reads its part" if spec.engine == "fsdp" else "or leave room for it"),
    )


def _on_gpu(spec: Spec, fresh: Estimate, going_on: States) -> str | None:
    """What resuming takes of a GPU that a fresh start fits."""
    from lintfit.memory.components import total
    from lintfit.memory.engines import resuming

    there = fresh.capacity_bytes
    needed = total(going_on.resume) + fresh.component("framework")
    if there is None or needed <= there or fresh.peak.likely > there:
        return None
    copies = gib(resuming.copies(spec, going_on.resume.get("optimizer_states", 0)))
    return (
        f"a fresh start takes {gib(fresh.peak.likely)} of a GPU, resuming from its checkpoint "
        f"{of_gib(needed, there)}: {copies} of optimizer states stand there twice as they are read"
    )


def _on_host(fresh: Estimate, going_on: States) -> str | None:
    """What resuming takes of a machine whose RAM suffices otherwise."""
    there, needed = fresh.host_capacity_bytes, fresh.host.steady + going_on.host.resume
    if there is None or needed <= there:
        return None
    return (
        f"resuming from its checkpoint takes {of_gib(needed, there)} of a machine's memory: "
        f"{gib(going_on.host.resume)} are read on top of what is offloaded, and a process is killed (exit code -9)"
    )
