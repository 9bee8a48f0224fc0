"""Where ZeRO-1 and 2 make the flat copy of all trained parameters: on the GPU only where it has room for it."""

from __future__ import annotations

from lintfit.memory.engines.host import ranks_per_node
from lintfit.memory.engines.states import Flattening
from lintfit.memory.framework import context, nccl
from lintfit.memory.spec import Spec

ON_GPU_SINCE = (0, 19, 0)
"""The first DeepSpeed release that flattens on the GPU at all; before, every group went over the host."""


def flattening(spec: Spec, version: tuple[int, int, int], parameters: int, whole: int) -> Flattening:
    """Where the copy of ``whole`` bytes is made while ``parameters`` bytes of the model lie on the GPU.

    DeepSpeed flattens on the GPU where ``available_memory() >= flat_buffer_bytes``, after it has emptied the cache;
    else it moves the parameters to the host one by one, flattens them there and moves the result back
    (stage_1_and_2.py ``flatten_on_accelerator``). ``available_memory`` is what the driver says is free or, without
    pynvml, all of the GPU but torch's tensors (cuda_accelerator.py): that overlooks the CUDA context and NCCL, so
    that a copy may then be tried which does not fit. On the host the parameters and the copy stand side by side.
    """
    aside = 2 * whole * ranks_per_node(spec)
    if version < ON_GPU_SINCE:
        return Flattening(0, 0, aside)
    if spec.capacity_bytes is None:
        return Flattening(whole, 0, 0)
    free = spec.capacity_bytes - parameters
    if whole <= free - context(spec).high - nccl(spec).high:
        return Flattening(whole, 0, 0)
    return Flattening(0, whole if whole <= free else 0, aside)
