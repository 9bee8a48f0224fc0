"""The space of plans: every combination of the axes' alternatives that makes sense for a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from lintfit.fit.axes import axes
from lintfit.fit.axes.buckets import GATHER
from lintfit.fit.axes.forced_float32 import NAME as NO_FLOAT32
from lintfit.fit.axes.forced_float32 import forces_float32
from lintfit.fit.options import Candidate, Effect, Option, Subject, effective_batch

PASSING = frozenset({"micro_batch_size", "seq_len", "gradient_checkpointing", "loss", "attention"})
"""Settings that change what comes and goes in a step and nothing of what lasts."""


class Space:
    """All candidates for one run, in groups that share everything but the :data:`PASSING` settings."""

    def __init__(self, subject: Subject, most: Effect = Effect.HARDWARE) -> None:
        self.subject = subject
        found = [tuple(option for option in axis if option.effect <= most) for axis in axes(subject)]
        self.passing = [axis for axis in found if all(option.changes.keys() <= PASSING for option in axis)]
        self.lasting = [axis for axis in found if axis not in self.passing]
        self._forced = forces_float32(subject.run)

    def __iter__(self) -> Iterator[Candidate]:
        """Every candidate, the one that changes nothing first."""
        for group in self.groups():
            yield from self.members(group)

    def groups(self) -> Iterator[tuple[Option, ...]]:
        """Every alternative of the lasting axes that can stand together."""
        for options in product(*self.lasting):
            chosen = tuple(option for option in options if option.is_change)
            if self._consistent(chosen):
                yield chosen

    def members(self, group: Sequence[Option]) -> Iterator[Candidate]:
        """The candidates of a group."""
        for options in product(*self.passing):
            candidate = self.combined((*group, *(option for option in options if option.is_change)))
            if candidate is not None:
                yield candidate

    def combined(self, options: Sequence[Option]) -> Candidate | None:
        """The candidate of these options, None where they cannot stand together or no accumulation keeps the batch.

        A forced float32 copy never stays beside a DeepSpeed that keeps fp32 master weights itself: taking it away is
        then free, and no change of the numerics.
        """
        changes: dict[str, Any] = {}
        for option in options:
            changes.update(option.changes)
        if "gpus" in changes and "seq_len" in changes:
            return None  # who has more cards need not cut samples
        spec = self.subject.spec
        if not changes.keys().isdisjoint({"micro_batch_size", "gpus"}):
            micro, samples = changes.get("micro_batch_size", spec.micro_batch_size), effective_batch(spec)
            ranks = replace(spec, gpus=changes.get("gpus", spec.gpus)).data_parallel
            if samples % (micro * ranks):
                return None
            changes["gradient_accumulation_steps"] = samples // (micro * ranks)
        if self._forced and self._value(changes, "engine") == "deepspeed":
            options = [replace(o, effect=Effect.SAME, note="") if o.name == NO_FLOAT32 else o for o in options]
        return Candidate(tuple(options), changes)

    def _consistent(self, options: Sequence[Option]) -> bool:
        """Whether these changes can stand together."""
        changes: dict[str, Any] = {}
        for option in options:
            changes.update(option.changes)
        engine, stage = self._value(changes, "engine"), self._value(changes, "zero_stage")
        deepspeed = engine == "deepspeed"
        masters = deepspeed and self._value(changes, "mixed_precision") != "no"
        if masters and self._forced and changes.keys().isdisjoint({"forced_float32", "method"}):
            return False  # the engine's master weights are the fp32 copy
        if deepspeed and "optimizer" in changes:
            return False
        if changes.get("quantization") and (stage == 3 or engine == "fsdp"):
            return False
        if not changes.keys().isdisjoint(GATHER) and not _counts(options, stage):
            return False
        another = "method" in changes or "quantization" in changes
        if another and "gpus" in changes:
            return False  # who has more cards need not train something else
        return not ("method" in changes and "forced_float32" in changes)

    def _value(self, changes: dict[str, Any], name: str) -> Any:
        return changes.get(name, getattr(self.subject.spec, name))


def _counts(options: Sequence[Option], stage: int) -> bool:
    """Whether the smaller buffers among the options are those of this stage."""
    (buffers,) = (option for option in options if not option.changes.keys().isdisjoint(GATHER))
    return (buffers.name == "smaller ZeRO-3 buffers") == (stage == 3)
