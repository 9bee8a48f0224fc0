"""Plans that need a host of a size that nobody has stated and few machines have, or all that a batch job asks for."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.documents.workspace import Workspace
from lintfit.fit.search import offloads
from lintfit.memory.engines.host import ranks_per_node
from lintfit.memory.result import Estimate
from lintfit.memory.spec import GIB, Spec
from lintfit.run.hardware import memory_of_job
from lintfit.run.model import Run

_SOME = 1024 * GIB
_PER_GPU = 4
"""Bytes that hosts with eight GPUs have, and more of them for each byte of the GPUs': 1 TB beside 8 × 40 GB and 2 TB
beside 8 × 80 GB (NVIDIA's data sheets of DGX A100 and H100), 488 GiB beside 8 × 16 GB (AWS p3.16xlarge), 1,152 GiB
beside 8 × 40 GB (p4d.24xlarge): from 3 to 3.8 times as much."""


def unstated(before: Spec, after: Spec, result: Estimate) -> str:
    """Why a plan that moves more to the host is left to a person: nobody says that there is so much; empty where it may
    be written."""
    if after.host_memory_bytes is not None or after.capacity_bytes is None or not offloads(after) - offloads(before):
        return ""
    usual = max(_SOME, _PER_GPU * ranks_per_node(after) * after.capacity_bytes)
    if result.host.peak <= usual:
        return ""
    return f"it takes {result.host.peak / GIB:,.0f} GiB of host memory on each node: nobody says that there is as much"


def beyond_job(run: Run, after: Spec, result: Estimate) -> str:
    """Why a plan that moves more to the host is left to a person: with what its processes have of their own it takes
    more than the batch job asks for, which Slurm ends a job for (``ConstrainRAMSpace``), and a server that the job
    starts beside it counts as well."""
    there = after.host_memory_bytes
    if run.spec is None or there is None or run.options.host_memory_bytes is not None:
        return ""
    if not result.host_is_tight or not offloads(after) - offloads(run.spec):
        return ""
    takes = (result.host.peak + result.host.processes) / GIB
    return f"it takes {takes:,.0f} GiB of host memory, and the job asks for {there / GIB:,.0f}: ask for more (--mem)"


def beyond_starting_job(run: Run, after: Spec, result: Estimate, workspace: Workspace) -> Iterator[str]:
    """That a batch job of the tree which starts the script of the launch asks for less host memory than a plan takes
    which moves more there."""
    if run.spec is None or run.launch is None or after.host_memory_bytes is not None:
        return
    takes = result.host.peak + result.host.processes
    for job in workspace.jobs(run.launch.document.path) if offloads(after) - offloads(run.spec) else ():
        there = memory_of_job(job)
        if there is not None and there < takes:
            asks = f"{job.path.as_posix()}, which starts it, asks for {there / GIB:,.0f}"
            yield f"it takes {takes / GIB:,.0f} GiB of host memory, and {asks}: ask for more (--mem)"
