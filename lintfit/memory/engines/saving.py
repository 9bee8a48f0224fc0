"""What saving takes on the GPU of a run that shards nothing."""

from __future__ import annotations

from lintfit.memory.engines.zero_config import zero_config
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.memory.tensors.parameters import Inventory, model_dtype, rounded
from lintfit.memory.versions import release
from lintfit.settings.values import Fsdp

REORDERS = (0, 38, 0)
KEEPS_ORDER = (0, 39, 1)
"""The bitsandbytes versions from and before which saving lays int8 weights out by rows again
(``Linear8bitLt._save_to_state_dict``)."""

HAS_LAYOUTS = (7, 5)
"""The compute capability from which int8 weights are laid out for the matrix units as they are first used."""


def gathered_on_host(spec: Spec, held: Inventory) -> int:
    """Bytes of the whole state dict that rank 0 gathers on its host where the model is sharded.

    ZeRO-3 in 16 bits (deepspeed ``engine.py:_zero3_consolidated_16bit_state_dict``), where
    ``stage3_gather_16bit_weights_on_model_save`` is on; FSDP 1 in the shards' own dtype (transformers'
    ``FULL_STATE_DICT`` with ``offload_to_cpu`` and ``rank0_only``). FSDP 2 saves shards by default.
    """
    if spec.engine == "deepspeed":
        config = zero_config(spec)
        elements = sum(weight.numel * weight.copies for weight in held.weights)
        return DTYPE_BYTES[model_dtype(spec)] * elements if config.stage == 3 and config.gather_on_save else 0
    first = spec.engine == "fsdp" and (spec.fsdp or Fsdp()).version == 1
    return held.bytes if first else 0


def lays_out(spec: Spec) -> bool:
    """Whether the run's int8 weights are not by rows; a GPU that nobody names is a new one."""
    capability = spec.gpu.compute_capability if spec.gpu is not None else None
    return spec.quantization == "int8" and (capability is None or capability >= HAS_LAYOUTS)


def may_reorder(spec: Spec) -> bool:
    """Whether saving may lay int8 weights out by rows again, in a version of bitsandbytes that is stated or not."""
    version = release(spec.versions.get("bitsandbytes"))
    return lays_out(spec) and (version is None or REORDERS <= version < KEEPS_ORDER)


def reordered(spec: Spec, held: Inventory) -> int:
    """Bytes of the int8 weights that bitsandbytes 0.38 and 0.39.0 make when the model is saved.

    One copy by rows stands in the state dict, from which PEFT picks the adapters' weights when all of it is made; the
    other takes the weight's place. alpaca-lora#350 and #424 died so after 200 steps.
    """
    if release(spec.versions.get("bitsandbytes")) is None or not may_reorder(spec):
        return 0
    return sum(2 * rounded(weight.numel) * weight.copies for weight in held.weights if weight.quantised)
