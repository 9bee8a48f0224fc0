"""The Accelerate files that TRL brings (``--accelerate_config zero2``; ``trl/accelerate_configs`` of 1.16)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lintfit.settings.model import UNKNOWN, Provenance, Setting

if TYPE_CHECKING:
    from lintfit.sources.launchers.command_line import Option
    from lintfit.sources.launchers.surroundings import Surroundings

_STAGES: Mapping[str, int] = {"zero1": 1, "zero2": 2, "zero3": 3}
PROCESSES: Mapping[str, int] = {**dict.fromkeys((*_STAGES, "fsdp1", "fsdp2", "multi_gpu"), 8), "single_gpu": 1}
"""Processes by name. All of them train in bf16 and offload nothing."""


def read(option: Option | None, around: Surroundings) -> Iterator[Setting]:
    """What ``--accelerate_config NAME`` states; a name of nobody's is handed on as the path that it is."""
    if option is not None:
        yield from stated(option.value, around.of(option))


def stated(name: str | None, place: Provenance) -> Iterator[Setting]:
    """The same of a name that stands elsewhere; None where it is not statically known."""
    if name is None or name not in PROCESSES:
        yield Setting("accelerate_config", UNKNOWN if name is None else name, place)
        return
    yield Setting("mixed_precision", "bf16", place)
    if name in _STAGES:
        yield Setting("engine", "deepspeed", place)
        yield Setting("zero_stage", _STAGES[name], place)
        yield Setting("offload_optimizer", "none", place)
        yield Setting("offload_param", "none", place)
    elif name.startswith("fsdp"):
        from lintfit.settings.values import Fsdp

        yield Setting("engine", "fsdp", place)
        yield Setting("fsdp", Fsdp(2 if name == "fsdp2" else 1, "FULL_SHARD", False), place)
