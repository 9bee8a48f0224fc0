"""DistributedDataParallel: the reducer's buckets."""

from __future__ import annotations

from lintfit.memory.engines.zeroing import in_backward
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.parameters import Inventory


def reduces(spec: Spec) -> bool:
    """Whether DDP averages gradients over several ranks."""
    return spec.engine == "ddp" and spec.data_parallel > 1


def views_buckets(spec: Spec) -> bool:
    """Whether gradients are views of the buckets: each is made apart, copied into its bucket, and gone
    (``reducer.cpp:mark_variable_ready_dense``)."""
    return spec.gradient_as_bucket_view and reduces(spec) and not in_backward(spec)


def bucket_bytes(inventory: Inventory) -> int:
    """Bytes of DDP's gradient buckets, alive from construction on.

    The reducer allocates one flat tensor per bucket, together as large as all trainable parameters
    (torch/csrc/distributed/c10d/reducer.cpp ``initialize_buckets``). With ``gradient_as_bucket_view=False``, the
    default of torch and of Accelerate's ``DistributedDataParallelKwargs``, the gradients are a second copy.
    """
    return inventory.trainable_bytes


def broadcast_bytes(inventory: Inventory) -> int:
    """Bytes in flight while DDP's constructor broadcasts the weights: up to 250 MiB in one coalesced tensor."""
    return min(250 * 2**20, inventory.bytes)
