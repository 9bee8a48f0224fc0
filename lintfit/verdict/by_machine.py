"""Runs of which the file that ``accelerate config`` wrote on the machine decides the engine: judged for all it may say.

The questions of ``accelerate config`` (accelerate 1.15, ``commands/config/cluster.py``) choose the number of processes,
one engine of DDP, DeepSpeed and FSDP, its stage or strategy, and a mixed precision, which arguments of a trainer beat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from lintfit.frozen import replace
from lintfit.memory.result import Verdict
from lintfit.memory.spec import Spec
from lintfit.run.model import ANY_OF_THE_MACHINE, Run
from lintfit.settings.registry import FSDP_GATHERS
from lintfit.settings.values import Fsdp
from lintfit.verdict.model import Judged

_SAID = (
    "whatever `accelerate config` wrote on the machine: one GPU or all, DDP, ZeRO or FSDP that wraps layers, each "
    "mixed precision"
)
Precision = Literal["no", "bf16", "fp16"]
Stage = Literal[0, 1, 2, 3]
STAGES: tuple[Stage, ...] = (0, 1, 2, 3)
NO_OFFLOAD: Mapping[str, Any] = {"offload_optimizer": "none", "offload_param": "none"}


def by_machine(run: Run, judge: Callable[[Run], Judged]) -> Judged | None:
    """The verdict of a run that fits, or that does not, whatever the machine's own file says; None for every other."""
    if run.spec is None or run.launch is None or run.hardware.gpus is None:
        return None

    def as_one(spec: Spec) -> Run:
        engine = replace(run.settings["engine"], value=spec.engine, provenance=ANY_OF_THE_MACHINE)
        return replace(run, spec=spec, settings={**run.settings, "engine": engine})

    return whatever(judge, as_one(least_of(run.spec)), map(as_one, configured(run.spec)), _SAID)


def whatever(judge: Callable[[Run], Judged], least: Run, runs: Iterable[Run], said: str) -> Judged | None:
    """The verdict of a run that is one of several: that the one which needs least does not fit, or that all do."""
    judged = judge(least)
    if judged.verdict is Verdict.DOES_NOT_FIT:
        return _noted(judged, said)
    found = []
    for run in runs:
        found.append(judge(run))
        if found[-1].verdict is not Verdict.FITS:
            return None
    return _noted(max(found, key=lambda judged: judged.peak), said)


def _noted(judged: Judged, said: str) -> Judged:
    result = judged.estimate
    if result is None:
        return judged
    return replace(judged, estimate=replace(result, assumptions=(said, *result.assumptions)))


def configured(spec: Spec) -> Iterator[Spec]:
    """The run as each of the machine's files makes it that may need most: without offload."""
    precisions: tuple[Precision, ...] = ("no", "bf16", "fp16")
    precisions = (spec.mixed_precision,) if "mixed_precision" in spec.stated else precisions
    for precision in precisions:
        for gpus in dict.fromkeys((1, spec.gpus)):
            same = replace(spec, mixed_precision=precision, gpus=gpus)
            yield replace(same, engine="single" if gpus == 1 else "ddp")
            yield from (replace(same, engine="fsdp", fsdp=fsdp) for fsdp in _ways_to_shard())
            yield from (zero(same, stage, NO_OFFLOAD) for stage in STAGES)


def _ways_to_shard() -> Iterator[Fsdp]:
    """FSDP as the questions make it, each layer wrapped: every strategy of FSDP 1, and whether FSDP 2 reshards."""
    yield from (Fsdp(1, strategy) for strategy in FSDP_GATHERS)
    yield from (Fsdp(2, strategy) for strategy in ("FULL_SHARD", "SHARD_GRAD_OP"))


def least_of(spec: Spec) -> Spec:
    """The run as the machine's file may make it that needs least of a GPU: ZeRO-3 on all of them, what can be on the
    host there, whose memory another file may leave alone."""
    precision = spec.mixed_precision if "mixed_precision" in spec.stated else "bf16"
    same = replace(spec, mixed_precision=precision, host_memory_bytes=None)
    return zero(same, 3, {"offload_optimizer": "cpu", "offload_param": "cpu"})


def zero(spec: Spec, stage: Stage, offload: Mapping[str, Any]) -> Spec:
    devices = {name: {"device": device} for name, device in offload.items()}
    config = {"zero_optimization": {"stage": stage, **devices}}
    return replace(spec, engine="deepspeed", zero_stage=stage, deepspeed_config=config, **offload)
