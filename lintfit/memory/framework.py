"""What nvidia-smi counts beside the tensors: CUDA context, NCCL, cuBLAS workspaces, and the allocator's slack.

Every figure is bytes of one GPU as low / likely / high, with the measurement it comes from.
"""

from __future__ import annotations

from lintfit.memory.components import total
from lintfit.memory.result import Range
from lintfit.memory.spec import GIB, Spec
from lintfit.memory.states import States

CONTEXT = Range(int(0.47 * GIB), int(0.5 * GIB), int(0.92 * GIB))
"""CUDA context and loaded kernels on an A100: 0.47 GiB with lazy module loading, 0.92 GiB with eager loading (torch
2.1; ml-engineering, training/performance); 0.5 GiB is what separates nvidia-smi from reserved in the fms runs."""

CONTEXT_HOPPER = Range(int(0.5 * GIB), int(0.71 * GIB), int(0.92 * GIB))
"""The same from compute capability 9.0 on: 0.71 GiB on an H200 (ml-engineering, 2026)."""

NCCL = Range(int(0.25 * GIB), int(1.0 * GIB), int(1.45 * GIB))
"""Buffers of NCCL's communicators: 1.45 GiB after the first barrier of eight A100 (0.55 to 2.00 GiB; ml-engineering,
debug/pytorch). The low end is one communicator of 24 channels at NCCL's default buffers (4 MiB ``NCCL_BUFFSIZE`` and
the LL and LL128 buffers beside it); the likely figure lies between, as the fms FSDP runs do."""

CUBLAS = 2 * 8_519_680
"""cuBLAS workspaces of the main and the autograd thread (measured on sm80)."""

CUBLAS_HOPPER = 2 * 32 * 2**20
"""The same on sm90 (torch ``aten/src/ATen/cuda/CublasHandlePool.cpp`` ``parseChosenWorkspaceSize``)."""

FRAGMENTATION = (0.0, 0.03, 0.14)
"""Share of the allocated peak that the caching allocator needs on top to run at all, after giving back what it can:
median 1.03, 90th percentile 1.14 over 339 replayed allocation logs. The least is nothing."""

CACHED_FIXED = 1.0 * GIB
CACHED_SHARE = 0.15
"""What the allocator keeps cached where the card has room: 1 GiB and 15 % of what comes and goes in a step, fitted to
nvidia-smi against allocated in the 155 fms runs on A100-80GB."""


def framework(spec: Spec, allocated: int, held: States | None = None) -> tuple[Range, tuple[str, ...]]:
    """Bytes beside the tensors for a peak of ``allocated`` bytes, and the assumptions behind them.

    ``low`` is what must be there; ``likely`` what nvidia-smi would show, with cached blocks as far as the card has
    room for them; ``high`` what to plan for. ``held`` saves counting the states again.
    """
    hopper = bool(spec.gpu and spec.gpu.compute_capability and spec.gpu.compute_capability >= (9, 0))
    context = CONTEXT_HOPPER if hopper else CONTEXT
    workspaces = CUBLAS_HOPPER if hopper else CUBLAS
    nccl = NCCL if spec.gpus > 1 else Range(0, 0, 0)
    base = Range(*(getattr(context, end) + getattr(nccl, end) + workspaces for end in ("low", "likely", "high")))
    lowest, median, most = (int(share * allocated) for share in FRAGMENTATION)
    cached = CACHED_FIXED + CACHED_SHARE * max(0, allocated - _steady(spec, held))
    if spec.capacity_bytes is not None:
        cached = min(cached, spec.capacity_bytes - allocated - base.likely)
    likely = max(median, int(cached))
    high = max(base.high + most, base.likely + likely)
    return Range(base.low + lowest, base.likely + likely, high), _assumptions(spec)


def _steady(spec: Spec, held: States | None) -> int:
    if held is None:
        from lintfit.memory.states import states

        held = states(spec)
    return total(held.forward)


def _assumptions(spec: Spec) -> tuple[str, ...]:
    return () if spec.gpu else ("CUDA context of an A100 (0.5 GiB; no GPU stated)",)
