"""What a log says of a death by memory. Sizes are bytes, None where the message has no such figure."""

from __future__ import annotations

from typing import Literal

from lintfit.frozen import frozen
from lintfit.memory.result import Phase

Of = Literal["gpu", "host", "shared-memory", "other"]
"""Whose memory ended: a GPU's, the machine's, that of /dev/shm; ``other``: killed, and the log says no more."""

Says = Literal[
    "torch", "driver", "nccl", "cublas", "bitsandbytes", "kernel", "launcher", "scheduler", "torch-cpu", "vllm", "ray"
]


@frozen
class Death:
    """One message, with its figures."""

    of: Of
    says: Says
    line: int
    """1-based, of the log."""
    text: str
    """The message, cut to a line."""
    requested: int | None = None
    total: int | None = None
    """The GPU's memory, or the host's, as the log has it."""
    free: int | None = None
    gpu: int | None = None
    """The GPU's number."""
    allocated: int | None = None
    """What torch's tensors take."""
    reserved: int | None = None
    """What torch's allocator holds, ``allocated`` included."""
    own: int | None = None
    """What the process has in use, CUDA's own included."""
    others: int | None = None
    """What other processes on the same GPU have in use, as far as they are named."""
    used: int | None = None
    """What was in use of the host."""

    @property
    def unused(self) -> int | None:
        """Reserved by torch and not allocated: what fragmentation may cost."""
        if self.reserved is None or self.allocated is None:
            return None
        return max(0, self.reserved - self.allocated)

    @property
    def elsewhere(self) -> int | None:
        """In use on the GPU beside what torch holds: CUDA's own, NCCL, and other processes."""
        if self.total is None or self.free is None or self.reserved is None:
            return None
        return max(0, self.total - self.free - self.reserved)


Doing = Phase | Literal["resume", "generate"]
"""What a run was at."""


@frozen
class Where:
    """Where in a run it died, by the last traceback before the message."""

    phase: Doing | None = None
    component: str = ""
    """What it was about to make: ``logits``, ``optimizer_states``, …; empty where the frames do not say."""
    frame: str = ""
    """The frame that says so: ``trainer.py: evaluation_loop``."""


@frozen
class Log:
    """What was found: the first death, where it was, and what else the log says of memory."""

    death: Death | None
    where: Where
    same: int = 0
    """Further messages of the same death: of other ranks, or of those who report it."""
    host_total: int | None = None
    host_used: int | None = None
    """The last that DeepSpeed's ``see_memory_usage`` printed of the host."""
    step: int | None = None
    """Steps of training that a progress bar had counted before it."""
