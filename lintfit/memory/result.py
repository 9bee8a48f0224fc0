"""The output of the memory model: what one rank holds, moment by moment, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from operator import attrgetter
from typing import Any, Literal

from lintfit.frozen import field, frozen
from lintfit.memory.spec import Stage

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

LABELS = ("resuming", "merging", "known bug", "longest sample")
"""Words with which a line of an estimate may begin, before a colon, where it is no mere assumption."""

NONE_OF_ALL = dict.fromkeys(COMPONENTS, 0)

Phase = Literal["load", "initialize", "resume", "forward", "backward", "step", "evaluate", "save"]

BEFORE_THE_FIRST_STEP: frozenset[Phase] = frozenset({"load", "initialize", "resume"})
"""Phases before any forward."""


class Verdict(StrEnum):
    """Whether a run's peak fits its GPUs."""

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


class Moment:
    """One point in a step at which memory may peak, and what is alive then.

    ``allocated``: bytes that torch's allocator counts, everything but ``framework``.
    """

    __slots__ = ("allocated", "components", "name", "phase", "total")

    def __init__(self, name: str, phase: Phase, components: Components) -> None:
        self.name = name
        self.phase = phase
        self.components = components
        self.total = sum(components.values())
        self.allocated = self.total - components.get("framework", 0)

    def beside(self, framework: int) -> Moment:
        """The same with bytes that torch's allocator does not count."""
        moment = Moment.__new__(Moment)
        moment.name, moment.phase = self.name, self.phase
        moment.components = {**self.components, "framework": framework}
        moment.allocated, moment.total = self.allocated, self.allocated + framework
        return moment

    @property
    def in_evaluation(self) -> bool:
        """Whether it is a moment of the Trainer's evaluation, not of what a trainer generates to train on."""
        return self.phase == "evaluate" and self.name.startswith("evaluation")


ALLOCATED: Callable[[Moment], int] = attrgetter("allocated")
TOTAL: Callable[[Moment], int] = attrgetter("total")
"""What moments are compared by."""


@frozen
class HostMemory:
    """Bytes of one node's memory (all its ranks): in steady state, while loading, and on NVMe.

    ``processes``: what these may have of their own on top, for libraries, CUDA and allocators.
    """

    steady: int = 0
    load_peak: int = 0
    pinned: int = 0
    nvme: int = 0
    processes: int = 0
    resume: int = 0
    """What reading a checkpoint takes on top of what stays, before the first step."""
    merge: int = 0
    """What merging adapters into the model takes there, when nothing else is."""
    save: int = 0
    """What one process gathers there of a sharded model to save it, on top of what stays: not in the peak."""

    @property
    def peak(self) -> int:
        return max(self.steady + self.resume, self.load_peak, self.merge)

    @property
    def decided_by(self) -> Literal["loading", "merging", "training"]:
        """What the peak is for; ``training`` with what is read as it resumes."""
        if self.load_peak == self.peak:
            return "loading"
        return "merging" if self.merge == self.peak else "training"


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
    stage: Stage | None = None
    """Of a pipeline the stage that is counted."""

    @property
    def peak_moment(self) -> Moment:
        """The moment with the most memory; the first of equals."""
        return max(self.moments, key=TOTAL)

    @property
    def allocated_bytes(self) -> int:
        """What ``torch.cuda.max_memory_allocated`` would say: the largest moment without ``framework``."""
        return max(map(ALLOCATED, self.moments))

    @property
    def peaks_in_evaluation(self) -> bool:
        """Whether an evaluation needs more than every moment of a training step."""
        return self.peak_moment.in_evaluation

    @property
    def headroom(self) -> float | None:
        """Share of the GPU left over at the likely peak; negative where it does not fit; None unknown."""
        if self.capacity_bytes is None:
            return None
        return 1 - self.peak.likely / self.capacity_bytes

    @property
    def host_is_short(self) -> bool:
        """Whether a node has less memory than the run needs of it; False where it is not known how much it has."""
        return self.host_capacity_bytes is not None and self.host.peak > self.host_capacity_bytes

    @property
    def host_is_tight(self) -> bool:
        """Whether a node may have too little with what its processes have of their own; False where it is not known how
        much it has."""
        there = self.host_capacity_bytes
        most = max(self.host.peak, self.host.steady + self.host.save)
        return there is not None and most > 0 and most + self.host.processes > there

    def component(self, name: str) -> int:
        """Bytes of one component at the peak."""
        return self.peak_moment.components.get(name, 0)

    @property
    def largest(self) -> Mapping[Phase, Moment]:
        """Of each phase the moment with the most memory; the first of equals."""
        found: dict[Phase, Moment] = {}
        for moment in self.moments:
            if moment.phase not in found or moment.total > found[moment.phase].total:
                found[moment.phase] = moment
        return found

    @property
    def lines(self) -> list[str]:
        """What the estimate rests on and what it leaves out, a line each."""
        return [*self.assumptions, *[f"not modelled: {what}" for what in self.not_modelled]]

    def to_json(self) -> dict[str, Any]:
        """The estimate as the CLI's JSON contract has it (bytes)."""
        peak = self.peak_moment
        return {
            "peak_bytes": {"low": self.peak.low, "likely": self.peak.likely, "high": self.peak.high},
            "peak_phase": peak.phase,
            "capacity_bytes": self.capacity_bytes,
            "host_bytes": self.host.peak,
            "nvme_bytes": self.host.nvme,
            "components": {**NONE_OF_ALL, **peak.components},
            "phases": {phase: {**NONE_OF_ALL, **moment.components} for phase, moment in self.largest.items()},
            "allocated_bytes": self.allocated_bytes,
            "verdict": str(self.verdict),
            "assumptions": self.lines,
        }
