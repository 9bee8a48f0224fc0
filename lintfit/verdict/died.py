"""A death by memory held against what the run should need: what agrees, what differs, and what ends it."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.frozen import frozen
from lintfit.memory.engines.saving import may_reorder
from lintfit.memory.result import Estimate, Moment
from lintfit.memory.spec import GIB, Spec
from lintfit.sources.logs.model import Death, Log

FRAGMENTED = 0.05
"""Share of a GPU that torch holds without using it from which fragmentation is worth mending."""
CONTEXT = 1.5 * GIB
"""What CUDA's context and NCCL take beside torch at the most, of one process (``memory.framework``)."""

EXPANDABLE = "expandable_segments"


@frozen
class Cause:
    """Something that the log or the estimate says made it die, and what to do about it; ``what`` tells it apart."""

    what: str
    said: str
    remedy: str = ""


@frozen
class Compared:
    """The run's memory in the phase in which it died, as predicted and as the log has it, in bytes of torch's."""

    predicted: int
    low: int
    high: int
    in_use: int | None = None

    @property
    def over(self) -> int:
        """Bytes in use above all that the run should need; 0 where it is within."""
        return max(0, (self.in_use or 0) - self.high)


def compared(log: Log, estimate: Estimate) -> Compared | None:
    """What the run should hold where it died; None where the log says nothing of a GPU's tensors."""
    death = log.death
    if death is None or death.of != "gpu":
        return None
    moment = _moment(log, estimate)
    share = moment.allocated / max(1, estimate.peak_moment.allocated)
    spread = [int(bound * share) - _framework(moment) for bound in (estimate.peak.low, estimate.peak.high)]
    in_use = death.allocated + (death.requested or 0) if death.allocated is not None else None
    return Compared(moment.allocated, max(0, min(spread[0], moment.allocated)), spread[1], in_use)


def _framework(moment: Moment) -> int:
    return moment.components.get("framework", 0)


def _moment(log: Log, estimate: Estimate) -> Moment:
    """The largest moment of the phase in which it died; of the whole step where the log does not say which."""
    phase = {"resume": "step", "generate": "evaluate"}.get(log.where.phase or "", log.where.phase)
    of_phase = [moment for moment in estimate.moments if moment.phase == phase]
    return max(of_phase or estimate.moments, key=lambda moment: moment.allocated)


def causes(log: Log, estimate: Estimate | None, spec: Spec | None = None) -> tuple[Cause, ...]:
    """What made it die, the likeliest first; without a ``spec`` by the log alone."""
    death = log.death
    if death is None:
        return ()
    if death.of == "shared-memory":
        return (_shared(),)
    if death.of in ("host", "other"):
        return tuple(_host(log, estimate))
    found = [*_others(death), *_fragmented(death)]
    if estimate is not None:
        found += _against(log, estimate, spec.seq_len if spec is not None else None)
    found += _phase(log, spec)
    return tuple(found)


def _shared() -> Cause:
    return Cause(
        "shared memory",
        "the workers of a DataLoader share batches through /dev/shm, and it is full: neither the GPU nor the host is",
        "docker run --shm-size=16g (or --ipc=host), or fewer num_workers",
    )


def _host(log: Log, estimate: Estimate | None) -> Iterator[Cause]:
    """The machine's own memory; a process that was killed without a word died of it as a rule."""
    death = log.death
    assert death is not None
    if death.of == "other":
        yield Cause("host memory", "the process was killed (signal 9): as a rule by the kernel, for the host's memory")
    if log.host_used is not None and log.host_total is not None:
        said = f"the last that DeepSpeed printed: {_gib(log.host_used)} of {_gib(log.host_total)} in use"
        yield Cause("host memory", said)
    if log.where.phase == "resume":
        yield Cause(
            "resuming",
            "each process reads its part of the checkpoint, states and all, into the machine's memory, beside the rest",
            "lintfit estimate FILES --resume says how much; fewer processes a machine, or a checkpoint without states",
        )
    if death.used is not None and death.total is not None:
        yield Cause("host memory", f"{_gib(death.used)} of {_gib(death.total)} of the machine were in use")
    if estimate is None or not estimate.host.peak:
        return
    total = log.host_total or estimate.host_capacity_bytes
    of = f" of {_gib(total)}" if total is not None else ""
    why, remedy = _NEEDED[estimate.host.decided_by]
    if estimate.host.resume and estimate.host.decided_by == "training":
        why += f", of it {_gib(estimate.host.resume)} read from the checkpoint"
    yield Cause("host memory", f"the run needs {_gib(estimate.host.peak)}{of} of a machine, {why}", remedy)


_NEEDED = {
    "loading": (
        "while the model is loaded by every process",
        "load on one rank (low_cpu_mem_usage, ZeRO-3's init)",
    ),
    "merging": (
        "while adapters are merged into the model",
        "save the adapters alone, and merge them where there is more",
    ),
    "training": ("for what is offloaded and pinned", "offload less, or to NVMe"),
}
"""What a machine's memory is needed for, and what to do where it ends."""


def _others(death: Death) -> Iterator[Cause]:
    """Memory of the GPU that is not this process's."""
    others = death.others or 0
    beside = death.elsewhere
    if death.own is not None and death.total is not None and death.free is not None:
        others = max(others, death.total - death.free - death.own)
    elif not others and beside is not None and beside > 2 * CONTEXT:
        others = int(beside - CONTEXT)
    if others > 0.5 * GIB:
        which = f"GPU {death.gpu}" if death.gpu is not None else "the GPU"
        yield Cause(
            "another process",
            f"{_gib(others)} of {which} belong to other processes",
            "nvidia-smi names them: end them, or leave that GPU out (CUDA_VISIBLE_DEVICES)",
        )


def _fragmented(death: Death) -> Iterator[Cause]:
    unused, asked = death.unused, death.requested or 0
    if unused is None or death.total is None or unused < max(FRAGMENTED * death.total, asked):
        return
    yield Cause(
        "fragmentation",
        f"torch holds {_gib(unused)} that no tensor uses, and found no {_gib(asked)} in one piece",
        f"PYTORCH_CUDA_ALLOC_CONF={EXPANDABLE}:True (torch 2.1 and later)",
    )


def _against(log: Log, estimate: Estimate, tokens: int | None) -> Iterator[Cause]:
    """Where more was in use than the run should need, or less than the GPU has."""
    found = compared(log, estimate)
    if found is None or found.in_use is None:
        return
    if found.over > 0.5 * GIB:
        longest = f" than {tokens:,} tokens" if tokens is not None else ""
        yield Cause(
            "more than the settings need",
            f"{_gib(found.over)} more is in use than these files' settings need at the most: a sample that is longer"
            f"{longest}, a larger micro-batch, or something that is kept from step to step",
            "cut or drop the longest samples; look whether it grows from step to step",
        )
    elif found.in_use < found.low * 0.6 and (log.death is not None and found.low < (log.death.total or 0)):
        yield Cause(
            "before its peak",
            f"it died with {_gib(found.in_use)} of tensors where this run holds {_gib(found.predicted)}: these files "
            "may not be what ran",
        )


def _phase(log: Log, spec: Spec | None) -> Iterator[Cause]:
    """What a phase is known for, as far as the run is one of those."""
    if log.where.phase == "resume":
        yield Cause(
            "resuming",
            "torch.load puts a checkpoint's optimizer states on the GPU that saved them, beside those that are there",
            'map_location="cpu" for a loop of your own; a sharded checkpoint for FSDP, ZeRO\'s own for DeepSpeed',
        )
    elif log.where.phase == "evaluate" and log.where.component == "logits":
        yield Cause(
            "evaluation",
            "the Trainer keeps the logits of an evaluation on the GPU until it ends",
            "--eval_accumulation_steps 1, --prediction_loss_only True, or a smaller --per_device_eval_batch_size",
        )
    elif log.where.phase == "save":
        if spec is None or spec.engine == "fsdp" or spec.zero_stage == 3:
            yield Cause(
                "saving",
                "saving gathers what is sharded: a whole copy of the weights on one GPU",
                "gather on the host (offload_to_cpu, rank0_only) or save each rank's part (SHARDED_STATE_DICT)",
            )
        if spec is None or may_reorder(spec):
            yield Cause(
                "saving",
                "bitsandbytes 0.38 copies all 8-bit weights on the GPU as the model is saved",
                "bitsandbytes 0.39.1 or later",
            )


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB" if size >= 0.1 * GIB else f"{size / 2**20:.0f} MiB"
