from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import place_of
from lintfit.checks.helpers.trees import assigned
from lintfit.checks.helpers.wording import of_gib
from lintfit.findings.model import Applicability
from lintfit.run.model import Run

_SHARE = 0.6
"""Share of the host's memory that may be page-locked before the rest of the machine suffers."""
_ZERO = "zero_optimization"


def check_run(context: RunContext) -> Iterator[Report]:
    run, estimate = context.run, context.estimate
    if estimate is None or estimate.host_capacity_bytes is None or run.value("engine") != "deepspeed":
        return
    host, capacity = estimate.host, estimate.host_capacity_bytes
    if host.pinned <= _SHARE * capacity or host.peak > capacity:
        return
    blocks = dict(_sections(run))
    stated = any(block.get("pin_memory") is True for block in blocks.values())
    pinned = [name for name, block in blocks.items() if block.get("pin_memory") is not False]
    yield Report(
        place_of(run, "offload_param" if run.value("offload_param") == "cpu" else "offload_optimizer"),
        f"pin_memory {'is true' if stated else 'is true by default'}: offloading locks "
        f"{of_gib(host.pinned, capacity)} of host memory, which nothing else can use and the system cannot swap",
        fix=assigned(
            run.deepspeed.document,
            "do not pin the offloaded states",
            Applicability.SAFE,
            {(_ZERO, name, "pin_memory"): False for name in pinned},
        )
        if run.deepspeed is not None and pinned
        else None,
        help='write "pin_memory": false, which makes the transfers slower',
    )


def _sections(run: Run) -> Iterator[tuple[str, Mapping[str, Any]]]:
    section = run.deepspeed.config.get(_ZERO) if run.deepspeed is not None else None
    for name in ("offload_optimizer", "offload_param"):
        block = section.get(name) if isinstance(section, Mapping) else None
        if isinstance(block, Mapping) and block.get("device") in ("cpu", "nvme"):
            yield name, block
