"""What each process has of its own on the host: a verdict's margin."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate
from lintfit.memory.spec import GIB

RUN = {"model": "Qwen/Qwen2.5-7B", "gpu": "H100", "gpus": 2, "mixed_precision": "bf16", "weights_dtype": "bf16"}


def of(**more: Any) -> Estimate:
    return estimate(spec_from_mapping({**RUN, **more}))


@pytest.mark.parametrize(("more", "short", "tight"), [(-1, True, True), (1, False, True), (25, False, False)])
def test_offloaded_states_leave_room_for_their_processes(more: int, short: bool, tight: bool) -> None:
    run: dict[str, Any] = {"zero_stage": 2, "offload_optimizer": "cpu"}
    found = of(**run, host_memory_gib=of(**run).host.peak / GIB + more)
    assert (found.host_is_short, found.host_is_tight) == (short, tight)


@pytest.mark.parametrize(("version", "copies"), [("0.21.0", 2), ("0.22.0", 1), ("1.12.0", 1)])
def test_one_rank_reads_for_fsdp_since_accelerate_0_22(version: str, copies: int) -> None:
    run: dict[str, Any] = {"engine": "fsdp", "fsdp": {"version": 1}}
    found, newest = (of(**run, versions=versions) for versions in ({"accelerate": version}, {}))
    assert found.host.load_peak == copies * newest.host.load_peak
    assert any("cpu_ram_efficient_loading" in line for line in found.assumptions) == (copies == 1)
