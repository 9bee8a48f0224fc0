"""What going on from a checkpoint takes, before the first step: on the GPU, and on the machine's host.

Weights are read on the host by all (transformers ``trainer.py:_load_from_checkpoint``). What differs is where the
optimizer's states are read, and how many copies of them there are until they stand in their place.

- One process: ``torch.load(map_location="cpu")`` since transformers 4.28 (transformers#22159), before on the GPU.
- DDP: on each rank's GPU, in all versions (``trainer.py:_load_optimizer_and_scheduler``: the host would have them as
  often as there are ranks; Accelerate's ``load_state`` says ``on_device``).
- torch before 2.1 copied what it is handed (``Optimizer.load_state_dict``: ``deepcopy(state_dict)``).
- DeepSpeed: every rank reads its own part of masters and states on its host (``engine.py:
  _get_all_zero_checkpoint_state_dicts``); the new states are made while the old ones are there (``stage3.py:
  _rigid_load_state_dict``, ``stage_1_and_2.py:_load_legacy_checkpoint``).
- FSDP: rank 0 reads all states on its host for a full state dict (accelerate ``fsdp_utils.py:load_fsdp_optimizer``);
  what torch holds on the GPUs while it flattens and scatters them nobody has counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lintfit.memory.components import components, plus
from lintfit.memory.engines.host import ranks_per_node
from lintfit.memory.engines.zero_config import optimizer_name, zero_config
from lintfit.memory.result import Components
from lintfit.memory.spec import DTYPE_BYTES, GIB, Spec
from lintfit.memory.tensors.optimizers import flat_state_bytes, optimizer
from lintfit.memory.tensors.parameters import Inventory, inventory, loaded_dtype
from lintfit.memory.versions import since

if TYPE_CHECKING:
    from lintfit.memory.engines.states import States

READS_ON_HOST = (4, 28)
"""The first transformers whose Trainer reads the states of one process on the host."""
COPIES_NOT = (2, 1)
"""The first torch whose ``Optimizer.load_state_dict`` makes no copy of what it is handed: tensors that lie where they
should are the states from then on. Modules copy the weights that they are handed in all of them."""


def on_gpu(spec: Spec, held: States) -> Components:
    """Bytes of one rank when the checkpoint is read: all that stays from then on, and the copies of states."""
    lasting = {
        name: min(size, held.step.get(name, 0))
        for name, size in held.forward.items()
        if name not in ("gradients", "temporaries") or spec.engine == "deepspeed"
    }
    return plus(lasting, components(temporaries=copies(spec, lasting.get("optimizer_states", 0))))


def copies(spec: Spec, states: int) -> int:
    """Bytes of further copies of the optimizer's ``states`` on the GPU."""
    if spec.engine == "deepspeed":
        return states
    if spec.engine == "fsdp":
        return 0
    return states if reads_on_gpu(spec) and not since(spec, "torch", COPIES_NOT) else 0


def said(spec: Spec, held: States) -> Iterator[str]:
    """What makes resuming take more than the step, in words."""
    states = held.forward.get("optimizer_states", 0)
    more = _gib(states)
    if spec.engine == "deepspeed":
        if copies(spec, states):
            yield f"resuming: the states read from the checkpoint are made beside those in their place ({more})"
    elif spec.engine == "ddp" and spec.data_parallel > 1:
        yield f"resuming: every rank of DDP reads the optimizer's states ({more}) straight onto its GPU"
    on_the_host = on_host(spec)
    if on_the_host:
        yield f"resuming: {_gib(on_the_host)} of a machine's RAM for what its processes read of the checkpoint"


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"


def reads_on_gpu(spec: Spec) -> bool:
    """Whether the states of a run that shards nothing are read straight onto the GPU."""
    return spec.data_parallel > 1 or not since(spec, "transformers", READS_ON_HOST)


def on_host(spec: Spec) -> int:
    """Bytes that one machine needs on top of what stays there: the largest of what its ranks read at once."""
    held = inventory(spec)
    weights = held.trainable * DTYPE_BYTES[loaded_dtype(spec)] * _readers(spec)
    return max(weights, states_on_host(spec, held))


def _readers(spec: Spec) -> int:
    """Ranks of a machine that read all trained weights: under ZeRO-3 each reads its part, with the states."""
    if spec.engine == "deepspeed" and zero_config(spec).stage == 3:
        return 0
    return 1 if spec.engine == "fsdp" else ranks_per_node(spec)


def states_on_host(spec: Spec, held: Inventory) -> int:
    """Bytes of optimizer states, with DeepSpeed's masters, that the ranks of a machine read on the host."""
    name = optimizer_name(spec)
    entry, _ = optimizer(name, spec.versions)
    if spec.engine == "deepspeed":
        shard = -(-held.trainable // max(1, spec.sharding_ranks))
        config = zero_config(spec)
        own = config.master * shard + flat_state_bytes(entry, shard, config.moment)
        return own * ranks_per_node(spec)
    whole = flat_state_bytes(entry, held.trainable, _itemsize(held))
    if spec.engine == "fsdp":
        return whole
    return 0 if reads_on_gpu(spec) else whole


def _itemsize(held: Inventory) -> int:
    return held.trainable_bytes // held.trainable if held.trainable else 0
