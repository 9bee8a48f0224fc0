from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import place_of
from lintfit.checks.helpers.wording import gib
from lintfit.findings.model import Severity
from lintfit.memory.engines.host import loaders
from lintfit.memory.result import HostMemory
from lintfit.memory.spec import Spec

_TYPICAL = 2
"""GiB of host memory per GiB of GPU memory that machines usually have."""


def check_run(context: RunContext) -> Iterator[Report]:
    run, spec, estimate = context.run, context.run.spec, context.estimate
    if spec is None or estimate is None or not estimate.host.peak:
        return
    if not {"offload_optimizer", "offload_param"}.isdisjoint(run.doubtful):
        return
    # How many processes share the host, and whether they share the states, is up to a launch that nobody sees.
    engine = run.settings.get("engine")
    if run.launch is None and engine is not None and engine.provenance.kind == "assumed":
        return
    host, there = estimate.host, estimate.host_capacity_bytes
    per_node = max(1, spec.gpus // max(1, spec.nodes))
    if there is not None and host.peak <= there:
        if host.steady + host.save > there:
            yield _saving(context, there)
        return
    if there is None and (spec.capacity_bytes is None or host.peak <= _TYPICAL * per_node * spec.capacity_bytes):
        return
    against = "more than machines with such GPUs usually have; a process that runs out is"
    if there is not None:
        against = f"the machine has {gib(there)}: the process is"
    what, pinned = _needed(spec, host)
    yield Report(
        place_of(run, "offload_optimizer", "offload_param"),
        f"{what} takes {gib(host.peak)} of host memory on each node{pinned}, {against} killed with exit code -9",
        severity=Severity.INFO if there is None or host.decided_by == "loading" else Severity.ERROR,
        fix=context.plan.fix if there is not None and context.plan is not None else None,
        help="offload less, let ZeRO-3 partition the model while it loads, or give --host-memory if there is more",
    )


def _needed(spec: Spec, host: HostMemory) -> tuple[str, str]:
    """What takes the most of the host's memory, and how much of it is page-locked."""
    if host.decided_by == "loading":
        copies = loaders(spec)
        return f"loading {f'a copy of the model on each of {copies} ranks' if copies > 1 else 'the model'}", ""
    if host.decided_by == "merging":
        return "merging the adapters into the model", ""
    pinned = f" ({gib(host.pinned)} of it pinned)" if host.pinned else ""
    if host.resume:
        return f"resuming reads {gib(host.resume)} beside what is offloaded, and" if host.steady else "resuming", pinned
    offloads = spec.offload_optimizer != "none" or spec.offload_param != "none" or spec.activation_offload
    return "offloading" if offloads or spec.engine == "fsdp" else "the paged optimizer", pinned


def _saving(context: RunContext, there: int) -> Report:
    """A whole state dict that one process gathers, in memory that suffices for all else."""
    assert context.estimate is not None and context.run.spec is not None
    host, zero = context.estimate.host, context.run.spec.engine == "deepspeed"
    instead = (
        "stage3_gather_16bit_weights_on_model_save: false, and zero_to_fp32.py on the checkpoint"
        if zero
        else "fsdp_state_dict_type: SHARDED_STATE_DICT"
    )
    return Report(
        place_of(context.run, "saves", "fsdp", "zero_stage"),
        f"saving gathers the whole model in one process: {gib(host.save)} on top of {gib(host.steady)}, the machine "
        f"has {gib(there)}: the process is killed with exit code -9",
        severity=Severity.WARNING,
        help=f"{instead} saves each rank's part",
    )
