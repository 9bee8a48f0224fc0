"""What would do for a run of which nobody says on which GPU: the usual ones, as the run is and with the usual changes.

A few estimates: at most three ways of training on four GPUs, by up to four counts where that is open, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lintfit.catalog.facts import Gpu
from lintfit.frozen import field, frozen, replace
from lintfit.memory.result import Verdict
from lintfit.memory.spec import Spec
from lintfit.run.change import changed_spec
from lintfit.run.hardware import missing_gpu
from lintfit.run.model import Run
from lintfit.verdict.judge import judge

USUAL = ("NVIDIA H200", "NVIDIA H100 80GB HBM3", "NVIDIA L40S", "NVIDIA GeForce RTX 4090")
"""One GPU of each usual size (141, 80, 48 and 24 GB), the largest first."""

_COUNTS = (8, 4, 2, 1)
"""Numbers of GPUs of one machine that are tried where nobody states it."""


@frozen
class WouldFit:
    """Whether a run fits on some GPUs, and with which changes of its settings; none where it fits as it is.

    ``gpus`` is how many they are together; the fewest of them that do, where nobody states it.
    """

    gpu: Gpu
    gpus: int
    fits: bool
    changes: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    """What people call the changes: "gradient checkpointing + micro-batch 1"."""


def would_fit(run: Run) -> tuple[WouldFit, ...]:
    """The usual GPUs, the largest first, down to the first on which the run does not fit.

    Nothing where a GPU is known, or where more than the GPU is missing for a verdict.
    """
    if run.spec is None or not _gpu_decides(run):
        return ()
    return tuple(_down(run, run.spec))


def still_open(run: Run) -> tuple[str, ...]:
    """What else is missing for a verdict of a run without a GPU: why there is none on the largest usual one."""
    if run.spec is None or not _gpu_decides(run):
        return ()
    from lintfit.catalog.gpus import gpus

    count = _COUNTS[0] if run.count_open else run.spec.gpus
    return judge(_moved(run, {}, gpus()[USUAL[0]], count)).unknown


def _gpu_decides(run: Run) -> bool:
    """Whether no GPU is known and nothing of the run itself is open."""
    assert run.spec is not None
    return run.spec.capacity_bytes is None and not run.doubtful and not run.unseen_flags


def _down(run: Run, spec: Spec) -> Iterator[WouldFit]:
    from lintfit.catalog.gpus import gpus

    ways = dict(_ways(spec))
    for gpu in (gpus()[name] for name in USUAL):
        found = _on(run, gpu, ways)
        if found is None:
            return
        yield found
        if not found.fits:
            return
        # What a larger GPU needs, a smaller one needs, too.
        ways = dict(list(ways.items())[list(ways).index(found.name) :])


def _on(run: Run, gpu: Gpu, ways: Mapping[str, Mapping[str, Any]]) -> WouldFit | None:
    """The first way to train that fits on a GPU; None where there is no verdict on one."""
    found = None
    for name, changes in ways.items():
        count, verdict = _fewest(run, changes, gpu)
        if verdict is Verdict.UNKNOWN:
            return None
        if verdict is Verdict.FITS:
            return WouldFit(gpu, count, fits=True, changes=changes, name=name)
        found = WouldFit(gpu, count, fits=False)
    return found


def _ways(spec: Spec) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """As it is, with gradient checkpointing, and with the smallest micro-batch, which accumulation makes up for."""
    yield "", {}
    name = ""
    changes: dict[str, Any] = {}
    if spec.gradient_checkpointing is False:
        name, changes = "gradient checkpointing", {"gradient_checkpointing": True}
        yield name, changes
    if spec.micro_batch_size > 1 and spec.generation is None:
        accumulated = spec.gradient_accumulation_steps * spec.micro_batch_size
        smallest = {"micro_batch_size": 1, "gradient_accumulation_steps": accumulated}
        yield " + ".join(filter(None, [name, "micro-batch 1"])), {**changes, **smallest}


def _fewest(run: Run, changes: Mapping[str, Any], gpu: Gpu) -> tuple[int, Verdict]:
    """The smallest number of GPUs from which on the run fits; the verdict of the largest where it fits on none."""
    assert run.spec is not None
    counts = _COUNTS if run.count_open else (run.spec.gpus,)
    found: tuple[int, Verdict] | None = None
    for count in counts:
        verdict = judge(_moved(run, changes, gpu, count)).verdict
        if verdict is not Verdict.FITS:
            return found or (count, verdict)
        found = count, verdict
    assert found is not None
    return found


def _moved(run: Run, changes: Mapping[str, Any], gpu: Gpu, count: int) -> Run:
    """The run with some changes on some GPUs, on every version that may be installed."""
    spec = changed_spec(run.spec, changes) if run.spec is not None else None
    return replace(
        run,
        unknown=tuple(line for line in run.unknown if line != missing_gpu(run.settings)),
        hardware=replace(run.hardware, gpu=gpu, gpus=count, capacity_bytes=gpu.usable_bytes),
        spec=replace(spec, gpu=gpu, gpus=count, capacity_bytes=gpu.usable_bytes) if spec is not None else None,
        older=lambda: tuple(replace(each, run=_moved(each.run, changes, gpu, count)) for each in run.older()),
    )
