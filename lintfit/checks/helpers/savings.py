"""Savings of memory that a run could do without: offload, ZeRO-3, gradient checkpointing, micro-batches of one sample.

Each is judged on top of those before it, so that everything that is reported holds together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from lintfit.checks.helpers.context import RunContext
from lintfit.checks.helpers.runs import fits, stated_at
from lintfit.frozen import frozen
from lintfit.memo import Memo
from lintfit.memory.result import Estimate
from lintfit.memory.spec import Spec
from lintfit.run.model import Run

Changes = Mapping[str, Any]
SavingKind = Literal["offload", "zero-3", "checkpointing", "micro-batch"]

_WORDS: Mapping[SavingKind, str] = {
    "offload": "offload",
    "zero-3": "ZeRO-3",
    "checkpointing": "checkpointing",
    "micro-batch": "micro-batches of 1",
}

WORTH = 1.1
"""How many times as long a step must take for a saving to be worth a word: the step-time model is no finer."""


@frozen
class Saving:
    """A saving that is not needed: the settings without it, what the run then takes, and what it costs.

    ``slower`` is the step time with the saving over that without it. ``beside`` names the others that the estimate is
    without as well: ``, also without ZeRO-3``, or nothing.
    """

    kind: SavingKind
    changes: Changes
    estimate: Estimate
    slower: float
    beside: str = ""


def not_needed(context: RunContext, kind: SavingKind) -> Saving | None:
    """The saving of this kind, where the run would fit without it; None where that is not certain.

    Certain is only what rests on nothing assumed: a known GPU and number of GPUs, a stated sequence length, and a
    run whose verdict is ``fits`` with and without the saving.
    """
    found = _OF_RUNS.get(context, None, lambda: tuple(_all(context)))
    return next((saving for saving in found if saving.kind == kind), None)


_OF_RUNS: Memo[tuple[Saving, ...]] = Memo(16)
"""The savings of a run, for which each rule about one of them asks."""


def _all(context: RunContext) -> Iterator[Saving]:
    run, spec = context.run, context.run.spec
    if spec is None or not fits(context.estimate) or "seq_len" not in spec.stated or run.hardware.gpus is None:
        return
    from lintfit.fit.speed import relative_step_time
    from lintfit.memory import estimate
    from lintfit.run.change import changed_spec

    gone: list[str] = []
    for kind, attempts in _KINDS.items():
        for changes in attempts(run, spec):
            after = changed_spec(spec, changes)
            result = estimate(after)
            slower = relative_step_time(after, spec)
            if fits(result) and slower >= WORTH:
                yield Saving(kind, changes, result, slower, f", also without {' and '.join(gone)}" if gone else "")
                gone.append(_WORDS[kind])
                spec = after
                break


def _offloads(run: Run, spec: Spec) -> Iterator[Changes]:
    """Both, then each alone: the parameters cross the bus more often."""
    both = {name: "none" for name in ("offload_param", "offload_optimizer") if getattr(spec, name) == "cpu"}
    if spec.engine == "deepspeed" and both:
        yield both
        yield from ({name: "none"} for name in both if len(both) > 1)


def _stages(run: Run, spec: Spec) -> Iterator[Changes]:
    if spec.engine == "deepspeed" and spec.zero_stage == 3 and spec.offload_param == "none" and spec.data_parallel > 1:
        yield from ({"zero_stage": 1}, {"zero_stage": 2})


def _without_checkpointing(run: Run, spec: Spec) -> Iterator[Changes]:
    if spec.gradient_checkpointing is True and stated_at(run, "gradient_checkpointing") is not None:
        yield {"gradient_checkpointing": False}


def _larger_batches(run: Run, spec: Spec) -> Iterator[Changes]:
    """The same effective batch in larger micro-batches, the largest first."""
    if spec.micro_batch_size != 1 or spec.generation is not None or stated_at(run, "micro_batch_size") is None:
        return
    for size in (64, 32, 16, 8, 4, 2):
        if spec.gradient_accumulation_steps % size == 0:
            steps = spec.gradient_accumulation_steps // size
            yield {"micro_batch_size": size, "gradient_accumulation_steps": steps}


_KINDS: Mapping[SavingKind, Callable[[Run, Spec], Iterator[Changes]]] = {
    "offload": _offloads,
    "zero-3": _stages,
    "checkpointing": _without_checkpointing,
    "micro-batch": _larger_batches,
}
"""What could be given up of a run, the dearest first, and of each the most that could be."""
