"""Plans that need a host of a size that nobody has stated and few machines have."""

from __future__ import annotations

from lintfit.fit.search import offloads
from lintfit.memory.engines.host import ranks_per_node
from lintfit.memory.result import Estimate
from lintfit.memory.spec import GIB, Spec

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
