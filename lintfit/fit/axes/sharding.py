"""How the model is sharded: DeepSpeed's ZeRO stages and offload, or FSDP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lintfit.fit.axes import fsdp
from lintfit.fit.options import LEAVE, NEW_ENGINE, Effect, Option, Subject, half
from lintfit.memory.engines.zero_config import zero_config
from lintfit.settings.registry import ZERO
from lintfit.sources.training import BringsConfigs

Rung = tuple[int, str, str]
"""Stage, the optimizer's device, the parameters' device."""

LADDER: tuple[tuple[str, Rung], ...] = (
    ("ZeRO-2", (2, "none", "none")),
    ("ZeRO-3", (3, "none", "none")),
    ("ZeRO-2 with the optimizer offloaded", (2, "cpu", "none")),
    ("ZeRO-3 with the optimizer offloaded", (3, "cpu", "none")),
    ("ZeRO-3 with optimizer and parameters offloaded", (3, "cpu", "cpu")),
)
"""From the least to the most memory saved and time spent."""

RUNGS: tuple[tuple[str, Rung], ...] = (("ZeRO-1", (1, "none", "none")), *LADDER)
"""All that is tried. ZeRO-1 keeps whole gradients, which is worth it only where steps accumulate."""

ON_NVME: tuple[tuple[str, Rung], ...] = (
    ("ZeRO-3 with the optimizer on NVMe", (3, "nvme", "none")),
    ("ZeRO-3 with optimizer and parameters on NVMe", (3, "nvme", "nvme")),
)
"""Tried where somebody names a folder on such a drive; only stage 3 can (DeepSpeed ``runtime/zero/config.py``)."""

FIELDS = ZERO
"""The settings of a rung, in its order."""


def options(subject: Subject) -> Iterator[Option]:
    """FSDP's alternatives, and every rung of ZeRO, also those below the run's own: a run has one engine.

    A run without DeepSpeed gets one, which is never safe.
    """
    spec = subject.spec
    if spec.engine in ("fsdp", "deepspeed") or can_shard(subject):
        yield from fsdp.options(subject)
    if not can_shard(subject):
        return
    here = standing(subject)
    for name, rung in (*RUNGS, *_on_nvme(subject)):
        if rung == here or (spec.data_parallel == 1 and rung[1] == "none") or not _can_be_said(subject, rung):
            continue
        if here is None and _for_adapters_alone(subject, rung):
            continue
        if not _steps(spec.optimizer, rung, here):
            continue
        if here is not None:
            back = _taken_back(rung, here) * subject.taking_back
            yield Option(name, dict(zip(FIELDS, rung, strict=True)), kind=name, counts=1 + back)
        else:
            yield _new(subject, name, rung)


_NEEDS_SHAPES = frozenset({"adam_mini", "muon"})
"""Optimizers whose step asks a parameter for its rows or heads, which ZeRO's flat parts have not (adam-mini 1.1.1,
``adam_mini.py:step``)."""
_ON_HOST = ("adam", "adagrad", "lion")
"""What DeepSpeed steps on the host (``deepspeed/ops``: DeepSpeedCPUAdam, CPUAdagrad, CPULion); of any other optimizer
accelerate takes DeepSpeedCPUAdam in its place (``map_pytorch_optim_to_deepspeed``)."""


def _steps(optimizer: str, rung: Rung, here: Rung | None) -> bool:
    """Whether an optimizer can step on the states of a rung, and stays the one that it is."""
    if optimizer in _NEEDS_SHAPES:
        return here is not None and rung[1] == here[1]
    offloads = rung[1] != "none" and (here is None or here[1] == "none")
    return not offloads or any(each in optimizer for each in _ON_HOST)


def _for_adapters_alone(subject: Subject, rung: Rung) -> bool:
    """Whether a rung would part or move the few states of adapters only: nobody takes another engine for them. A base
    in float32 is cast by DeepSpeed."""
    spec, (stage, _, param) = subject.spec, rung
    parts_base = stage == 3 and (spec.data_parallel > 1 or param != "none")
    return spec.method == "lora" and spec.weights_dtype != "fp32" and not parts_base


def _taken_back(rung: Rung, here: Rung) -> int:
    """How many of the savings that a run has are not in a rung: shards, offload of the optimizer, of the parameters."""
    pairs = zip(rung[1:], here[1:], strict=True)
    return (rung[0] < here[0]) + sum(before != "none" and after == "none" for after, before in pairs)


def rungs(subject: Subject) -> Iterator[tuple[str, Option]]:
    """Every rung of ZeRO by name, from the least sharded, the run's own as an option that changes nothing."""
    if not can_shard(subject):
        return
    spec, here = subject.spec, standing(subject)
    whole = (("ZeRO-0", (0, "none", "none")),) if here is not None else ()
    for name, rung in (*whole, *RUNGS, *_on_nvme(subject)):
        if not _can_be_said(subject, rung):
            continue
        if rung == here:
            yield name, LEAVE
        elif here is None and (spec.data_parallel > 1 or rung[1] != "none"):
            yield name, _new(subject, name, rung)
        elif here is not None:
            yield name, Option(name, dict(zip(FIELDS, rung, strict=True)), kind=name)


def _can_be_said(subject: Subject, rung: Rung) -> bool:
    """Whether a rung can be asked for: a front end that brings configs of its own has not one for each."""
    run = subject.run
    if run.deepspeed is not None or not isinstance(run.recipe, BringsConfigs):
        return True
    return run.recipe.zero_config(dict(zip(FIELDS, rung, strict=True))) is not None


def _on_nvme(subject: Subject) -> Iterator[tuple[str, Rung]]:
    """What can go to NVMe: a rank's part of every parameter must fit one of ``offload_param``'s buffers."""
    if subject.run.nvme_path is None:
        return
    largest = max((tensor.numel for tensor in subject.spec.facts.tensors), default=0)
    buffer = zero_config(subject.spec).param_buffer_size
    for name, rung in ON_NVME:
        if rung[2] != "nvme" or largest <= buffer * subject.spec.data_parallel:
            yield name, rung


def standing(subject: Subject) -> Rung | None:
    """Where the run stands on the ladder; None without DeepSpeed."""
    spec = subject.spec
    return (spec.zero_stage, spec.offload_optimizer, spec.offload_param) if spec.engine == "deepspeed" else None


def _new(subject: Subject, name: str, rung: Rung) -> Option:
    spec = subject.spec
    lacks_bf16 = spec.mixed_precision == "bf16" and half(subject) == "fp16"
    precision = half(subject) if lacks_bf16 or spec.mixed_precision == "no" else spec.mixed_precision
    changes: dict[str, Any] = {"engine": "deepspeed", **dict(zip(FIELDS, rung, strict=True))}
    if spec.engine == "fsdp":
        changes["fsdp"] = None
    note = f"DeepSpeed trains in {precision} with fp32 master weights"
    if _unlaunched(subject):
        note = f"{note}; a launcher has to start it (torchrun, deepspeed), which nothing here does"
    return Option(name, {**changes, "mixed_precision": precision}, Effect.NUMERICS, note, kind=name, counts=NEW_ENGINE)


def _unlaunched(subject: Subject) -> bool:
    """Whether nothing says how a script is started, whose parts several ranks are to share."""
    return subject.run.launch is None and subject.run.recipe is None and subject.run.script is not None


def can_shard(subject: Subject) -> bool:
    """DeepSpeed needs a launcher that starts ranks, and does not shard a bitsandbytes base."""
    run, spec = subject.run, subject.spec
    if spec.engine == "deepspeed":
        return True
    if spec.engine == "fsdp" and run.recipe is not None:
        return False
    if spec.quantization is not None:
        return False
    if run.recipe is not None and "zero_stage" in run.recipe.adjustable:
        return True
    launcher = run.launch.launcher if run.launch is not None else None
    return launcher in ("torchrun", "deepspeed", "accelerate") or (launcher is None and spec.gpus > 1)
