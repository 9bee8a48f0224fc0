"""Models that lie on the GPU beside the trained one and are only asked (:class:`.spec.FrozenModel`)."""

from __future__ import annotations

from lintfit.memory.spec import FrozenModel, Spec
from lintfit.memory.tensors.parameters import inventory


def frozen_bytes(spec: Spec) -> int:
    """Bytes of all of them on one rank: whole, but under ZeRO-3, which may keep them on the host.

    While a DeepSpeed config with stage 3 is alive, ``from_pretrained`` partitions every model that it loads
    (transformers ``integrations/deepspeed.py``), and TRL's ``prepare_deepspeed`` those that it is handed. Accelerate
    does not wrap a model that it prepares with ``evaluation_mode``: under FSDP each rank has it whole.
    """
    sharded = spec.engine == "deepspeed" and spec.zero_stage == 3
    if sharded and spec.offload_param != "none":
        return 0
    sharers = spec.sharding_ranks if sharded else 1
    return sum(-(-weight_bytes(each) // sharers) for each in spec.frozen_models)


def weight_bytes(each: FrozenModel) -> int:
    """Bytes of the weights of one of them, as loaded."""
    return inventory(
        Spec(
            facts=each.facts,
            weights_dtype=each.weights_dtype,
            quantization=each.quantization,
            trainer="classification" if each.scores else "causal-lm",
        )
    ).bytes


def name_of(each: FrozenModel) -> str:
    """What a report calls one of them."""
    return each.facts.name or each.facts.model_type
