"""DistributedDataParallel: the reducer's buckets."""

from __future__ import annotations

from lintfit.memory.tensors.parameters import Inventory


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
