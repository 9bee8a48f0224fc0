"""What saving takes on the GPU of a run that shards nothing."""

from __future__ import annotations

from lintfit.memory.spec import Spec
from lintfit.memory.tensors.parameters import Inventory, rounded
from lintfit.memory.versions import release

REORDERS = (0, 38, 0)
KEEPS_ORDER = (0, 39, 1)
"""The bitsandbytes versions from and before which saving lays int8 weights out by rows again
(``Linear8bitLt._save_to_state_dict``)."""

HAS_LAYOUTS = (7, 5)
"""The compute capability from which int8 weights are laid out for the matrix units as they are first used."""


def lays_out(spec: Spec) -> bool:
    """Whether the run's int8 weights are not by rows; a GPU that nobody names is a new one."""
    capability = spec.gpu.compute_capability if spec.gpu is not None else None
    return spec.quantization == "int8" and (capability is None or capability >= HAS_LAYOUTS)


def reordered(spec: Spec, held: Inventory) -> int:
    """Bytes of the int8 weights that bitsandbytes 0.38 and 0.39.0 make when the model is saved.

    One copy by rows stands in the state dict, from which PEFT picks the adapters' weights when all of it is made; the
    other takes the weight's place. alpaca-lora#350 and #424 died so after 200 steps.
    """
    version = release(spec.versions.get("bitsandbytes"))
    if version is None or not REORDERS <= version < KEEPS_ORDER or not lays_out(spec):
        return 0
    return sum(2 * rounded(weight.numel) * weight.copies for weight in held.weights if weight.quantised)
