"""The frozen copy of the policy that DPO, KTO, GRPO, RLOO and PPO compare it with: where it lies, what it gathers.

Read in TRL 1.16 (``models/utils.py``: ``prepare_deepspeed``, ``prepare_fsdp``); what FSDP gathers is measured with its
trainers on two ranks.
"""

from __future__ import annotations

from typing import NamedTuple

from lintfit.frozen import replace
from lintfit.memory.engines.fsdp import sharers
from lintfit.memory.engines.host import ranks_per_node
from lintfit.memory.result import HostMemory
from lintfit.memory.spec import DTYPE_BYTES, FrozenModel, Spec
from lintfit.memory.tensors.frozen_models import weight_bytes
from lintfit.memory.tensors.parameters import Inventory, inventory, model_dtype
from lintfit.memory.tensors.weights import parameter_count
from lintfit.settings.values import Fsdp


class Gathered(NamedTuple):
    """Bytes of the reference that FSDP gathers on each GPU: from its first forward on, and more while that runs."""

    lasting: int = 0
    running: int = 0


def reference_bytes(spec: Spec) -> int:
    """Bytes of the frozen reference model on one GPU; 0 where there is none, or where it waits on the host.

    TRL loads a second copy for full fine-tuning. With adapters the policy without them is the reference, unless
    somebody hands over a model of its own.
    """
    return 0 if on_host(spec) else frozen_share(spec, whole_bytes(spec))


def beside_bytes(spec: Spec) -> int:
    """Bytes on one GPU of all frozen models beside the trained ones: the reference, PPO's reward model, any other."""
    found = 0 if on_host(spec) else _beside(spec)
    return found + frozen_bytes(spec) if spec.frozen_models else found


def frozen_bytes(spec: Spec) -> int:
    """Bytes of all of them on one rank: whole, but under ZeRO-3 and FSDP, which may keep them on the host.

    While a DeepSpeed config with stage 3 is alive, ``from_pretrained`` partitions every model that it loads
    (transformers ``integrations/deepspeed.py``), and TRL's ``prepare_deepspeed`` those that it is handed. Accelerate
    wraps each model that it prepares in FSDP 1, but not with ``evaluation_mode`` (1.12, ``Accelerator.prepare_model``):
    each rank has it whole then. It refuses a second one under FSDP 2.
    """
    return sum(_share(spec, each) for each in spec.frozen_models)


def _share(spec: Spec, each: FrozenModel) -> int:
    by_fsdp = spec.engine == "fsdp" and each.prepared
    if by_fsdp or (spec.engine == "deepspeed" and spec.zero_stage == 3):
        offloads = spec.fsdp is not None and spec.fsdp.cpu_offload if by_fsdp else spec.offload_param != "none"
        return 0 if offloads else -(-weight_bytes(each) // (sharers(spec) if by_fsdp else spec.sharding_ranks))
    return weight_bytes(each)


def with_frozen_models(spec: Spec, host: HostMemory) -> HostMemory:
    """A node's memory with the frozen models that are offloaded with the policy's parameters."""
    size = beside_on_host(spec)
    if not size:
        return host
    if spec.offload_param == "nvme":
        return replace(host, nvme=host.nvme + size)
    return replace(host, steady=host.steady + size)


def beside_on_host(spec: Spec) -> int:
    """Bytes of the frozen models that the ranks of a node keep off their GPUs: FSDP 1 locks gradients for them too."""
    if not on_host(spec):
        return 0
    twice = 2 if spec.engine == "fsdp" and spec.fsdp is not None and spec.fsdp.version == 1 else 1
    return _beside(spec) * ranks_per_node(spec) * twice


def on_host(spec: Spec) -> bool:
    """Whether frozen models are offloaded: TRL prepares them with the policy's own settings, where it shards them."""
    if spec.engine == "deepspeed":
        return spec.zero_stage == 3 and spec.offload_param != "none"
    return _under_fsdp(spec) and spec.fsdp is not None and spec.fsdp.cpu_offload


def frozen_share(spec: Spec, size: int) -> int:
    """Bytes of one rank's part of a frozen model of ``size`` bytes."""
    return -(-size // frozen_sharers(spec))


def frozen_sharers(spec: Spec) -> int:
    """Ranks that share a frozen model: those that share the policy under ZeRO-3 and FSDP, else none but its own.

    PPO's trainer moves its models to the device whole but under ZeRO-3, also with FSDP (``PPOTrainer.__init__``).
    """
    if spec.engine == "deepspeed":
        return spec.sharding_ranks if spec.zero_stage == 3 else 1
    if not _under_fsdp(spec):
        return 1
    from lintfit.memory.engines.fsdp import sharers

    return sharers(spec)


def reference_gathered(spec: Spec) -> Gathered:
    """What FSDP gathers of the reference, which has no backward to let go of it.

    FSDP 1 wraps it like the policy, layer by layer, and leaves its root unit gathered. FSDP 2 gets one ``fully_shard``
    around all of it: the whole model is gathered at once, and the flat buffer that it came in stays beside it until the
    forward is over (``FSDPParamGroup.wait_for_unshard``). Without resharding after the forward all of it stays.
    """
    if not whole_bytes(spec) or not _under_fsdp(spec) or frozen_sharers(spec) == 1:
        return Gathered()
    from lintfit.memory.engines.fsdp import gathered_bytes, units

    settings = spec.fsdp or Fsdp()
    held = _weights(spec)
    whole = sum(gathered_bytes(spec, weight) for weight in held.weights)
    if settings.gathers == 1:
        return Gathered(whole, whole if settings.version == 2 else 0)
    if settings.version == 2:
        return Gathered(0, 2 * whole)
    layer, root = units(spec, held)
    return Gathered(root.gathered, layer.gathered)


def _under_fsdp(spec: Spec) -> bool:
    return spec.engine == "fsdp" and spec.trainer != "ppo"


def whole_bytes(spec: Spec) -> int:
    """Bytes of the whole reference: a base of a few bits has one of as many."""
    if not spec.reference_model:
        return 0
    if spec.quantization is not None:
        return _weights(spec).bytes
    return parameter_count(spec.facts) * DTYPE_BYTES[model_dtype(spec)]


def _weights(spec: Spec) -> Inventory:
    """The reference's own tensors: the policy's without adapters, and nothing of what is cast for their training."""
    if spec.method == "full" and spec.trainer != "ppo":
        return inventory(spec)
    return inventory(replace(spec, method="full", trainer="causal-lm", kbit_upcast=None))


def _beside(spec: Spec) -> int:
    """Bytes of one rank's part of all frozen models; the reward model has one row in the place of the head."""
    reference = frozen_share(spec, whole_bytes(spec))
    if spec.trainer != "ppo":
        return reference
    facts = spec.reward_model or spec.facts
    count = sum(tensor.total for tensor in facts.tensors if tensor.role != "lm_head")
    return reference + frozen_share(spec, count * DTYPE_BYTES[model_dtype(spec)])
