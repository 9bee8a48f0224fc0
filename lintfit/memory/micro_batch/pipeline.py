"""What a stage of a pipeline has beside one micro-batch: buffers for its neighbours, and further micro-batches."""

from __future__ import annotations

from lintfit.memory.activations.tape import rounded
from lintfit.memory.spec import Spec


def exchanged_bytes(spec: Spec, size: int) -> int:
    """Bytes of what a stage receives, one buffer of ``size`` bytes for each micro-batch.

    torch makes the buffers of all micro-batches beforehand (``pipelining/stage.py:_prepare_forward_infra``), DeepSpeed
    one, and at least two, for every micro-batch in flight (``pipe/schedule.py:TrainSchedule.num_pipe_buffers``).
    """
    if spec.pipeline_stage is None or spec.pipeline_parallel == 1:
        return 0
    count = max(2, in_flight(spec)) if spec.engine == "deepspeed" else spec.gradient_accumulation_steps
    return count * rounded(size)


def in_flight(spec: Spec) -> int:
    """Micro-batches whose graphs a stage holds at once; the last one runs each backward straight away."""
    if spec.pipeline_stage == "last":
        return 1
    return min(spec.pipeline_parallel, spec.gradient_accumulation_steps)
