"""The space of plans: every combination of the axes' alternatives that makes sense for a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

from lintfit.fit.axes import axes
from lintfit.fit.axes.buckets import GATHER
from lintfit.fit.axes.evaluation import follows_training
from lintfit.fit.axes.forced_float32 import NAME as NO_FLOAT32
from lintfit.fit.axes.forced_float32 import forces_float32
from lintfit.fit.options import Candidate, Effect, Option, Subject

PASSING = frozenset(
    {
        "micro_batch_size", "seq_len", "gradient_checkpointing", "loss", "attention",
        "eval_batch_size", "eval_accumulation_steps", "eval_predictions",
        "loop_outputs",
    }
)  # fmt: skip
"""Settings that change what comes and goes in a step and nothing of what lasts."""

OF_A_STEP = PASSING | {"gradient_accumulation_steps"}
"""Those, and what follows from the micro-batch."""


class Passing(NamedTuple):
    """One alternative of every axis that only changes what passes, merged."""

    options: tuple[Option, ...]
    changes: Mapping[str, Any]
    effect: Effect


class Space:
    """All candidates for one run, in groups that share everything but the :data:`PASSING` settings."""

    def __init__(self, subject: Subject, most: Effect = Effect.HARDWARE) -> None:
        self.subject = subject
        spec = subject.spec
        found = [tuple(option for option in axis if option.effect <= most) for axis in axes(subject)]
        self.passing = [axis for axis in found if all(option.changes.keys() <= PASSING for option in axis)]
        self.lasting = [axis for axis in found if axis not in self.passing]
        self._by_class: dict[tuple[Effect, bool], tuple[Passing, ...]] = {}
        self._forced = forces_float32(subject.run)
        self._follows = follows_training(subject.run)
        self._samples = spec.effective_batch
        self._shared = spec.tensor_parallel * spec.pipeline_parallel * spec.sequence_parallel

    def __iter__(self) -> Iterator[Candidate]:
        """Every candidate, the one that changes nothing first."""
        for group in self.groups:
            yield from self.members(group)

    @cached_property
    def groups(self) -> tuple[tuple[Option, ...], ...]:
        """Every alternative of the lasting axes that can stand together."""
        chosen = (tuple(option for option in options if option.is_change) for options in product(*self.lasting))
        return tuple(self._named(options) for options in chosen if self._consistent(options))

    @cached_property
    def _passing(self) -> tuple[Passing, ...]:
        found: list[Passing] = []
        for options in product(*self.passing):
            chosen = tuple(option for option in options if option.is_change)
            found.append(Passing(chosen, merged(chosen), max((o.effect for o in chosen), default=Effect.SAME)))
        return tuple(found)

    def members(self, group: Sequence[Option], effect: Effect | None = None) -> Iterator[Candidate]:
        """The candidates of a group; of one class, where that is given."""
        lasting = max((option.effect for option in group), default=Effect.SAME)
        if effect is not None and lasting > effect:
            return
        changes = merged(group)
        for passing in self._passing if effect is None else self._passing_to(effect, lasting):
            candidate = self._together((*group, *passing.options), {**changes, **passing.changes})
            if candidate is not None:
                yield candidate

    def _passing_to(self, effect: Effect, lasting: Effect) -> tuple[Passing, ...]:
        """What passes and makes, together with what lasts, one class."""
        key = (effect, lasting is effect)
        if key not in self._by_class:
            self._by_class[key] = tuple(one for one in self._passing if max(lasting, one.effect) is effect)
        return self._by_class[key]

    def combined(self, options: Sequence[Option]) -> Candidate | None:
        """The candidate of these options, None where they cannot stand together or no accumulation keeps the batch."""
        return self._together(self._named(options), merged(options))

    def without(self, candidate: Candidate, option: Option) -> Candidate | None:
        """A candidate without one of its options, None where the others cannot stand alone."""
        left = tuple(each for each in candidate.options if each is not option)
        lasting = [each for each in left if not each.changes.keys() <= PASSING]
        if option.must or not left or not self._consistent(lasting):
            return None
        return self.combined(left)

    def offloading_less(self, candidate: Candidate) -> Iterator[Candidate | None]:
        """A candidate with another rung of its own stage that leaves more on the GPU, the least offload first."""
        return self._offloading(candidate, lambda other, own: other < own)

    def offloading_more(self, candidate: Candidate) -> Iterator[Candidate | None]:
        """The same with a rung that leaves less on the GPU than the candidate's own, which offloads a part already."""
        return self._offloading(candidate, lambda other, own: other > own)

    def _offloading(
        self, candidate: Candidate, wanted: Callable[[set[str], set[str]], bool]
    ) -> Iterator[Candidate | None]:
        for option in candidate.options:
            axis = next((axis for axis in self.lasting if option in axis), ()) if _offloads(option) else ()
            for other in axis:
                alike = _apart_from_offload(other) == _apart_from_offload(option)
                if alike and wanted(_offloads(other), _offloads(option)):
                    yield self.combined([other if each is option else each for each in candidate.options])

    def _together(self, options: tuple[Option, ...], changes: dict[str, Any]) -> Candidate | None:
        if "gpus" in changes and "seq_len" in changes:
            return None  # who has more GPUs need not cut samples
        spec = self.subject.spec
        if "micro_batch_size" in changes or "gpus" in changes:
            ranks = max(1, changes.get("gpus", spec.gpus) // self._shared)
            steps, rest = divmod(self._samples, changes.get("micro_batch_size", spec.micro_batch_size) * ranks)
            if rest:
                return None
            changes["gradient_accumulation_steps"] = steps
        if "micro_batch_size" in changes and self._follows:
            micro = changes["micro_batch_size"]
            if changes.setdefault("eval_batch_size", micro) > micro:
                return None  # nobody states a larger one than it comes to by itself
        return Candidate(options, changes)

    def _named(self, options: Sequence[Option]) -> tuple[Option, ...]:
        """The options by what they mean together: a forced float32 copy never stays beside a DeepSpeed that keeps
        fp32 master weights itself; taking it away is then free, and no change of the numerics."""
        if self._forced and self._value(merged(options), "engine") == "deepspeed":
            return tuple(replace(o, effect=Effect.SAME, note="") if o.name == NO_FLOAT32 else o for o in options)
        return tuple(options)

    def _consistent(self, options: Sequence[Option]) -> bool:
        """Whether these changes can stand together."""
        changes = merged(options)
        engine, stage = self._value(changes, "engine"), self._value(changes, "zero_stage")
        deepspeed = engine == "deepspeed"
        masters = deepspeed and self._value(changes, "mixed_precision") != "no"
        if masters and self._forced and changes.keys().isdisjoint({"weights_dtype", "method"}):
            return False  # the engine's master weights are the fp32 copy
        own = ("optimizer" in option.changes and "fsdp" not in option.changes for option in options)
        if engine in ("deepspeed", "fsdp") and any(own):
            return False
        if changes.get("quantization") and (stage == 3 or engine == "fsdp"):
            return False
        if not changes.keys().isdisjoint(GATHER) and not (deepspeed and _counts(options, stage)):
            return False
        another = "method" in changes or "quantization" in changes
        if another and "gpus" in changes:
            return False  # who has more GPUs need not train something else
        precision = {"mixed_precision", "weights_dtype"}
        recipe = self.subject.run.recipe
        by_recipe = recipe is not None and not recipe.uses_trl and precision <= changes.keys()
        if by_recipe and not any(precision <= option.changes.keys() for option in options):
            return False  # one word of the recipe says both
        return not ("method" in changes and any(option.name == NO_FLOAT32 for option in options))

    def _value(self, changes: dict[str, Any], name: str) -> Any:
        return changes.get(name, getattr(self.subject.spec, name))


def merged(options: Iterable[Option]) -> dict[str, Any]:
    """What some options change together."""
    return {name: value for option in options for name, value in option.changes.items()}


def _counts(options: Sequence[Option], stage: int) -> bool:
    """Whether the smaller buffers among the options are those of this stage."""
    (buffers,) = (option for option in options if not option.changes.keys().isdisjoint(GATHER))
    return (buffers.name == "smaller ZeRO-3 buffers") == (stage == 3)


_OFFLOADED = ("offload_optimizer", "offload_param")


def _offloads(option: Option) -> set[str]:
    """What an option moves off the GPU."""
    return {name for name in _OFFLOADED if option.changes.get(name, "none") != "none"}


def _apart_from_offload(option: Option) -> dict[str, Any]:
    return {name: value for name, value in option.changes.items() if name not in _OFFLOADED}
