"""The memory of a machine's host by what happens: loading, resuming, training, and what its processes have besides."""

from __future__ import annotations

from lintfit.memory.engines.host import flattens, loaders, ranks_per_node, reads_files
from lintfit.memory.result import Estimate, HostMemory
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.parameters import inventory
from lintfit.report import Line, View
from lintfit.report.bars import gib
from lintfit.report.styled import wrapped

_NAME = 24


def host_lines(spec: Spec, estimate: Estimate, view: View) -> list[Line]:
    """A table, where the host's memory is stated or something lies there; else nothing."""
    host, there = estimate.host, estimate.host_capacity_bytes
    if not host.peak or (there is None and not (host.steady or host.resume or host.merge)):
        return []
    ranks = ranks_per_node(spec)
    rows = [("loading", host.load_peak, _loading(spec, host, ranks))]
    if host.resume:
        rows.append(("resuming", host.steady + host.resume, f"{gib(host.resume)} GiB of it read from the checkpoint"))
    if host.steady:
        rows.append(("training", host.steady, _lasting(host)))
    if host.save:
        rows.append(("saving", host.steady + host.save, f"{gib(host.save)} GiB of it the whole model, on one process"))
    if host.merge:
        rows.append(("merging", host.merge, "all weights, and the difference of the largest matrix"))
    own = f"libraries, CUDA and allocators of {_processes(ranks)}, at the most"
    rows.append(("beside it, up to", host.processes, own))
    of = f", of {gib(there)} GiB" if there is not None else ""
    lines: list[Line] = [[], [("  host memory of a machine", ""), (of, "")]]
    for name, size, why in rows:
        lines += wrapped([(f"    {name:<{_NAME - 2}}", ""), (f"{gib(size):>8} GiB  ", "")], why, view.width, _NAME + 16)
    if there is not None:
        lines.append([(f"    {_verdict(estimate)}", "bad" if estimate.host_is_short else "")])
    return lines


def _verdict(estimate: Estimate) -> str:
    if estimate.host_is_short:
        return "does not fit: a process that runs out is killed (exit code -9)"
    if estimate.host_is_tight:
        return "tight: with what the processes have of their own it may not fit (exit code -9)"
    return "fits"


def _loading(spec: Spec, host: HostMemory, ranks: int) -> str:
    """How many processes read a copy, where ``load_peak`` is a multiple of what one reads."""
    if flattens(spec, inventory(spec), host):
        return "two copies of the parameters, one by one and flat, on their way to the GPU"
    reading = loaders(spec)
    if spec.made_in_parts and reads_files(spec):
        return "one file of the checkpoint at a time"
    if reading == 1:
        return "one process reads the weights" if ranks > 1 else "the process reads the weights"
    return f"each of {reading} processes reads {gib(host.load_peak // reading)} GiB"


def _lasting(host: HostMemory) -> str:
    plain = host.steady - host.pinned
    parts = [f"{gib(host.pinned)} GiB page-locked, each block rounded up to a power of two"] if host.pinned else []
    parts += [f"{gib(plain)} GiB not page-locked"] if plain else []
    return ", ".join(parts)


def _processes(ranks: int) -> str:
    return "one process" if ranks == 1 else f"{ranks} processes"
