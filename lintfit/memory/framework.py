"""What nvidia-smi counts beside the tensors: CUDA context, NCCL, cuBLAS workspaces, and the allocator's slack.

Every figure is bytes of one GPU as low / likely / high, with the measurement it comes from.
"""

from __future__ import annotations

from lintfit.memory.activations.frames import PADDED_LABELS
from lintfit.memory.activations.recipe import of
from lintfit.memory.components import total
from lintfit.memory.engines.states import States
from lintfit.memory.loss.losses import UPCAST_IN_MODEL, own_loss
from lintfit.memory.loss.preference import FROM_WHOLE, loss_path, scored, sequences
from lintfit.memory.result import BEFORE_THE_FIRST_STEP, Moment, Range
from lintfit.memory.spec import GIB, Spec
from lintfit.memory.tensors.tensor_parallel import logit_parts

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
CACHED_SHARE = 0.12
"""What the allocator keeps cached where the GPU has room: 1 GiB and 12 % of what comes and goes in a step apart from
the logits, fitted to nvidia-smi against allocated in the fms runs whose loss holds no logits."""

SIDE_STREAM = 1.0 * GIB
"""The same beside it where a second stream gathers sharded parameters, whose blocks the first cannot use: fitted to the
fms runs with FSDP on 2 and 4 A100."""


def _hopper(spec: Spec) -> bool:
    return bool(spec.gpu and spec.gpu.compute_capability and spec.gpu.compute_capability >= (9, 0))


def context(spec: Spec) -> Range:
    """Bytes of the CUDA context and loaded kernels."""
    return CONTEXT_HOPPER if _hopper(spec) else CONTEXT


def nccl(spec: Spec) -> Range:
    """Bytes of NCCL's buffers; none on one GPU."""
    return NCCL if spec.gpus > 1 else Range(0, 0, 0)


def workspaces(spec: Spec) -> int:
    """Bytes of cuBLAS's workspaces."""
    return CUBLAS_HOPPER if _hopper(spec) else CUBLAS


def framework(
    spec: Spec, allocated: int, held: States, logits: int = 0, loss: int | None = None, streams: int | None = None
) -> tuple[Range, tuple[str, ...]]:
    """Bytes beside the tensors for a peak of ``allocated`` bytes, and the assumptions behind them.

    ``low`` is what must be there; ``likely`` what nvidia-smi would show, with cached blocks as far as the GPU has
    room for them; ``high`` what to plan for. ``logits`` of the peak's bytes are logits; ``loss`` bytes are allocated
    around the loss, where that is not the peak.
    """
    own, links, scratch = context(spec), nccl(spec), workspaces(spec)
    base = Range(own.low + links.low + scratch, own.likely + links.likely + scratch, own.high + links.high + scratch)
    lowest, median, most = (int(share * allocated) for share in FRAGMENTATION)
    room = sum(size for _, size in cached(spec, allocated, held, logits, loss, streams))
    if spec.capacity_bytes is not None:
        room = min(room, spec.capacity_bytes - allocated - base.likely)
    likely = max(median, room)
    high = max(base.high + most, base.likely + likely)
    return Range(base.low + lowest, base.likely + likely, high), _assumptions(spec)


def cached(
    spec: Spec, allocated: int, held: States, logits: int = 0, loss: int | None = None, streams: int | None = None
) -> tuple[tuple[str, int], ...]:
    """What the allocator would keep cached on a GPU with room, by cause (bytes).

    Blocks that lie idle around the loss serve the layers' backward: they count as far as the loss with them needs more
    than the peak.
    """
    passing = max(0, allocated - total(held.forward) - logits)
    found = [("of what comes and goes", int(CACHED_FIXED + CACHED_SHARE * passing))]
    idle = idle_logits(spec) - (allocated - loss if loss is not None else 0)
    if idle > 0:
        found.append(("of the loss's forward, idle in its backward", idle))
    if gathers(spec):
        found.append(("of the streams that gather and reduce", int(SIDE_STREAM) if streams is None else streams))
    return tuple(found)


def side_streams(spec: Spec, points: tuple[Moment, ...], peak: Moment) -> int | None:
    """Bytes that the pools of FSDP's own streams add to the peak; None for other engines.

    FSDP 1 only: nvidia-smi agrees in the fms runs, full and LoRA, on 2 and 4 A100; FSDP 2 has streams of other uses.

    The allocator keeps a pool for every stream, and one cannot use another's blocks. Parameters are gathered in the
    unshard stream; gradients are flattened, reduced and kept in the post-backward stream
    (``torch/distributed/fsdp/_runtime_utils.py``: ``_unshard_stream``, ``_post_backward_stream``). What is idle in them
    stands beside whatever is alive elsewhere: a smaller moment with idle pools (as the run saves) may need more than
    the largest, in which they are used. Before the first pass there are none.
    """
    if spec.engine != "fsdp" or (spec.fsdp is not None and spec.fsdp.version != 1):
        return None
    gathered = max(point.components.get("communication_buffers", 0) for point in points)
    reduced = max(
        point.components.get("gradients", 0) + point.components.get("temporaries", 0)
        for point in points
        if point.name == "end of backward"
    )

    def with_pools(point: Moment) -> int:
        used = point.components.get("communication_buffers", 0)
        return point.allocated + gathered - used + max(0, reduced - point.components.get("gradients", 0))

    passed = [with_pools(point) for point in points if point.phase not in BEFORE_THE_FIRST_STEP]
    return max(0, max(passed, default=0) - peak.allocated)


def gathers(spec: Spec) -> bool:
    """Whether sharded parameters are gathered in a stream of their own."""
    return spec.zero_stage == 3 or (spec.fsdp is not None and spec.fsdp.gathers == 2 and spec.gpus > 1)


def idle_logits(spec: Spec, transformers: tuple[int, ...] | None = None) -> int:
    """Bytes of logits that the loss's forward and backward leave in blocks which the other cannot use.

    The fp32 gradients of the backward do not fit the block of the half-precision logits. Up to transformers 4.48 the
    shifted copies are one row shorter than the logits, so that the gradient of the whole logits, one copy more, fits
    none of their blocks (a replay of the loss's allocations, block by block). A kernel that overwrites the logits
    does not change it: nvidia-smi shows as much in the fms runs. ``transformers``: another version than the run's.
    """
    if loss_path(spec) != "full" and loss_path(spec) not in FROM_WHOLE:
        return 0
    recipe = of(spec)
    seq = spec.local_seq
    entries = sequences(spec) * scored(spec, seq) * -(-spec.facts.vocab // logit_parts(spec))
    half = recipe.weights == 2 or recipe.autocast
    if own_loss(spec.facts, recipe):
        return entries * (4 if recipe.autocast else recipe.weights)
    version = transformers or recipe.transformers
    if version >= PADDED_LABELS:
        return entries * (2 if half else 0)
    return entries * (6 if half and version < UPCAST_IN_MODEL else 4)


def _assumptions(spec: Spec) -> tuple[str, ...]:
    return () if spec.gpu else ("CUDA context of an A100 (0.5 GiB; no GPU stated)",)
