"""Memory of one node's host: offloaded states with their pinned rounding, and the copies made while loading."""

from __future__ import annotations

from typing import cast

from lintfit.frozen import frozen
from lintfit.memory.result import HostMemory
from lintfit.memory.spec import DTYPE_BYTES, GIB, Dtype, Spec
from lintfit.memory.tensors.parameters import Inventory, loaded_dtype
from lintfit.memory.tensors.weights import loaded_parameters
from lintfit.memory.versions import release, since


def pinned(*sizes: int) -> int:
    """Bytes that torch really page-locks for blocks of these sizes.

    ``CachingHostAllocator`` rounds every block up to the next power of two (c10/core/CachingHostAllocator.h
    ``allocate``: ``c10::llvm::PowerOf2Ceil``); blocks are kept for reuse.
    """
    return sum(1 << (size - 1).bit_length() for size in sizes if size > 0)


def ranks_per_node(spec: Spec) -> int:
    return -(-spec.gpus // max(1, spec.nodes))


PROCESS = int(0.44 * GIB)
"""What a process has of its own once it has imported its libraries: measured, 0.44 GiB resident with torch's build for
CPUs 2.13, transformers 5.13 and the Trainer, of it 0.31 not mapped from files (0.45 with DeepSpeed 0.19.8)."""

OFFLOADING_PROCESS = 10 * 10**9
"""The same at the most where states are offloaded: measured runs had 7 to 10 GB a rank beyond their tensors, of CUDA's
libraries and context, what loading leaves and what the allocators keep."""


@frozen
class RankHost:
    """Bytes that one rank keeps on its host in steady state: page-locked blocks, ordinary memory, files on NVMe."""

    locked: tuple[int, ...] = ()
    plain: int = 0
    nvme: int = 0

    @property
    def bytes(self) -> int:
        """Bytes of the tensors themselves, before the rounding of page-locked blocks."""
        return sum(self.locked) + self.plain


def host_memory(spec: Spec, held: Inventory, rank: RankHost | None = None, passing: int = 0) -> HostMemory:
    """One node's host memory from what each of its ranks keeps there; ``passing``: bytes there for a while at start."""
    rank = rank or RankHost()
    ranks = ranks_per_node(spec)
    locked = pinned(*rank.locked)
    return HostMemory(
        steady=(locked + rank.plain) * ranks,
        pinned=locked * ranks,
        load_peak=max(load_peak(spec, held), passing),
        nvme=rank.nvme * ranks,
        processes=(OFFLOADING_PROCESS if rank.bytes else PROCESS) * ranks,
    )


def reads_a_part(spec: Spec) -> bool:
    """Whether a process reads no more of the checkpoint than its own stage, or its own part of each matrix."""
    return spec.pipeline_parallel > 1 or (spec.tensor_parallel > 1 and spec.engine != "deepspeed")


def loaders(spec: Spec) -> int:
    """Processes of a machine that read the checkpoint on their own: one, or each of its ranks."""
    if spec.quantization is not None or reads_a_part(spec) or spec.placed_by_tensor:
        return ranks_per_node(spec)
    return 1 if spec.made_in_parts or reads_once(spec) else ranks_per_node(spec)


def quantized_on_host(spec: Spec) -> bool:
    """Whether quantized weights come back to the host of every rank as they are loaded, as under ZeRO-3 (transformers
    ``_load_state_dict_into_meta_model``: ``is_deepspeed_zero3_enabled()``)."""
    return spec.quantization is not None and spec.engine == "deepspeed" and spec.zero_stage == 3


def load_peak(spec: Spec, held: Inventory) -> int:
    """Bytes on one node while the ranks load the checkpoint.

    Every rank reads a full copy into host memory before it moves it. Under FSDP one rank a node does (Accelerate's
    ``cpu_ram_efficient_loading``, by default), under ``zero.Init`` none (:func:`read_in_parts`). Quantised weights go
    to the GPU tensor by tensor (:func:`quantized_on_host`: and back), and so do all by a ``device_map``, of files that
    are mapped; of a model that it splits transformers reads a rank's part. PPO's four models are all read before the
    first is moved.
    """
    if reads_a_part(spec):
        return held.cast(loaded_dtype(spec)).bytes * ranks_per_node(spec)
    if quantized_on_host(spec):
        return held.bytes * ranks_per_node(spec)
    if spec.quantization is not None:
        return held.largest * DTYPE_BYTES[spec.weights_dtype] * ranks_per_node(spec)
    if spec.made_in_parts:
        return read_in_parts(spec)
    if spec.placed_by_tensor:
        return held.largest * DTYPE_BYTES[loaded_dtype(spec)] * ranks_per_node(spec)
    return loaded_parameters(spec) * DTYPE_BYTES[loaded_dtype(spec)] * loaders(spec)


FILE = 5 * 10**9
"""What a file of a checkpoint holds at the most, as it is usually saved (``save_pretrained(max_shard_size="5GB")``)."""
READS_WHOLE_SINCE = (5, 0)
"""The first transformers that puts all files of a checkpoint together before it fills what ``zero.Init`` has made."""


def stored_dtype(spec: Spec) -> Dtype:
    """dtype in which a checkpoint is read: its own, where that is known."""
    stored = spec.facts.checkpoint_dtype
    return cast("Dtype", stored) if stored in DTYPE_BYTES else loaded_dtype(spec)


def reads_files(spec: Spec) -> bool:
    """Whether one file of the checkpoint after the other is read and let go: by a transformers known to be old."""
    known = release(spec.versions.get("transformers"))
    return known is not None and known < READS_WHOLE_SINCE


def read_in_parts(spec: Spec) -> int:
    """Bytes of what is read at once for a model that ``zero.Init`` makes: the parameters are shards of the enabled
    precision on the GPUs, and the checkpoint stays in its own dtype on its way there, in files that all ranks map
    (transformers ``modeling_utils.py:load_shard_file``; ``merged_state_dict`` since 5.0)."""
    whole = loaded_parameters(spec) * DTYPE_BYTES[stored_dtype(spec)]
    return min(whole, FILE) if reads_files(spec) else whole


def flattens(spec: Spec, held: Inventory, host: HostMemory) -> bool:
    """Whether copies that are made flat on the host take more there than what is read of the checkpoint."""
    return host.load_peak > load_peak(spec, held)


READS_ONCE_SINCE = (0, 22)
"""The first accelerate under which one rank reads the checkpoint for FSDP (August 2023; an option, on by default,
since 0.24: accelerate#2037)."""


def reads_once(spec: Spec) -> bool:
    """Whether one rank a node reads the checkpoint for FSDP (``cpu_ram_efficient_loading``)."""
    return spec.engine == "fsdp" and since(spec, "accelerate", READS_ONCE_SINCE)
