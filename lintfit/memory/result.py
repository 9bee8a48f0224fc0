"""The output of the memory model: what one rank holds, moment by moment, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, Literal

from lintfit.frozen import frozen

COMPONENTS = (
    "parameters",
    "gradients",
    "optimizer_states",
    "master_weights",
    "activations",
    "logits",
    "communication_buffers",
    "temporaries",
    "framework",
)

Components = Mapping[str, int]
"""Bytes by component name; names come from :data:`COMPONENTS`."""

Phase = Literal["load", "initialize", "forward", "backward", "step", "evaluate", "save"]


class Verdict(StrEnum):
    """Whether a run's peak fits its cards."""

    FITS = "fits"
    TIGHT = "tight"
    DOES_NOT_FIT = "does-not-fit"
    UNKNOWN = "unknown"


@frozen
class Range:
    """Bytes: the least that must be there, the likely figure, and the most to plan for."""

    low: int
    likely: int
    high: int


@frozen
class Moment:
    """One point in a step at which memory may peak, and what is alive then."""

    name: str
    phase: Phase
    components: Components
    total: int = field(init=False, compare=False)
    allocated: int = field(init=False, compare=False)
    """Bytes that torch's allocator counts: everything but ``framework``."""

    def __post_init__(self) -> None:
        total = sum(self.components.values())
        object.__setattr__(self, "total", total)
        object.__setattr__(self, "allocated", total - self.components.get("framework", 0))


@frozen
class HostMemory:
    """Bytes of one node's memory (all its ranks): in steady state, while loading, and on NVMe."""

    steady: int = 0
    load_peak: int = 0
    pinned: int = 0
    nvme: int = 0

    @property
    def peak(self) -> int:
        return max(self.steady, self.load_peak)


@frozen
class Estimate:
    """Predicted memory of one rank. ``moments`` holds every candidate for the peak, in the order of a step."""

    peak: Range
    moments: tuple[Moment, ...]
    verdict: Verdict
    capacity_bytes: int | None = None
    host: HostMemory = field(default_factory=HostMemory)
    host_capacity_bytes: int | None = None
    assumptions: tuple[str, ...] = ()
    not_modelled: tuple[str, ...] = ()

    @property
    def peak_moment(self) -> Moment:
        """The moment with the most memory; the first of equals."""
        return max(self.moments, key=lambda moment: moment.total)

    @property
    def allocated_bytes(self) -> int:
        """What ``torch.cuda.max_memory_allocated`` would say: the largest moment without ``framework``."""
        return max(moment.allocated for moment in self.moments)

    @property
    def headroom(self) -> float | None:
        """Share of the card left over at the likely peak; negative where it does not fit; None unknown."""
        if self.capacity_bytes is None:
            return None
        return 1 - self.peak.likely / self.capacity_bytes

    def component(self, name: str) -> int:
        """Bytes of one component at the peak."""
        return self.peak_moment.components.get(name, 0)

    def to_json(self) -> dict[str, Any]:
        """The estimate as the CLI's JSON contract has it (bytes)."""
        peak = self.peak_moment
        phases: dict[str, dict[str, int]] = {}
        for moment in self.moments:
            if moment.phase not in phases or moment.total > sum(phases[moment.phase].values()):
                phases[moment.phase] = {name: moment.components.get(name, 0) for name in COMPONENTS}
        return {
            "peak_bytes": {"low": self.peak.low, "likely": self.peak.likely, "high": self.peak.high},
            "peak_phase": peak.phase,
            "capacity_bytes": self.capacity_bytes,
            "host_bytes": self.host.peak,
            "nvme_bytes": self.host.nvme,
            "components": {name: peak.components.get(name, 0) for name in COMPONENTS},
            "phases": phases,
            "allocated_bytes": self.allocated_bytes,
            "verdict": str(self.verdict),
            "assumptions": [*self.assumptions, *(f"not modelled: {what}" for what in self.not_modelled)],
        }
