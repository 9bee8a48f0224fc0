"""Values of settings that are more than a word or a number: those that borders hand on, and those of changes."""

from __future__ import annotations

from typing import Final, Literal

from lintfit.frozen import frozen
from lintfit.settings.registry import FSDP_GATHERS, default


@frozen
class Fsdp:
    """How FSDP shards. ``strategy`` uses FSDP 1's names; FSDP 2 resharding after forward is ``FULL_SHARD``."""

    version: Literal[1, 2] = default("fsdp", "version")
    strategy: str = default("fsdp", "strategy")
    cpu_offload: bool = default("fsdp", "cpu_offload")
    replicas: int = 1
    """Groups of ranks that each hold all shards (Accelerate's ``dp_replicate_size``)."""
    auto_wrap: bool = default("fsdp", "auto_wrap")
    """Whether each layer is a unit of its own; else the whole model is one (``NO_WRAP``, ``FSDP(model)`` alone)."""
    adapters_apart: bool = default("fsdp", "adapters_apart")
    """FSDP 1: whether adapters are units of their own, as PEFT's policy makes them, or lie in their layer's."""

    @property
    def gathers(self) -> int:
        """How often all parameters are gathered for a micro-batch: for forward and backward, or once for both."""
        return FSDP_GATHERS[self.strategy]

    def __str__(self) -> str:
        return f"FSDP {self.version} {self.strategy}{' with CPU offload' if self.cpu_offload else ''}{self.unwrapped}"

    @property
    def unwrapped(self) -> str:
        """What a description adds where the whole model is one unit."""
        return "" if self.auto_wrap else ", all in one unit"


@frozen
class Adapters:
    """A change of ``method`` to LoRA: adapters of this rank on all linear layers, under this engine."""

    rank: int
    engine: str


@frozen
class FourBits:
    """A change of ``quantization``: a base in four bits (``nf4``, ``nf4-double``), whole on each of so many ranks."""

    name: str
    ranks: int


@frozen
class InLauncherFile:
    """A change of ``gradient_accumulation_steps`` in Accelerate's own file, whatever the script says."""

    steps: int


AS_LOADED: Final = "as loaded"
"""A change of ``weights_dtype``: the cast of the whole model goes, and the weights stay as they are loaded."""
