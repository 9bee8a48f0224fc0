"""What is on the GPU while the weights get there, before the engine shards, casts or quantises them."""

from __future__ import annotations

from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.memory.tensors.parameters import Inventory, loaded_dtype, rounded
from lintfit.memory.tensors.quantization import quantises


def loaded_bytes(spec: Spec, held: Inventory) -> int:
    """Bytes of a full copy of the model as loaded, without adapters."""
    base = held
    if spec.method == "lora":
        base = Inventory.of(tuple(weight for weight in held.weights if not _added(weight.name)))
    return base.cast(loaded_dtype(spec)).bytes


def _added(name: str) -> bool:
    return ".lora_" in name or ".modules_to_save" in name


def load_temporary(spec: Spec) -> int:
    """Bytes of the largest weight that is on the GPU at full width while it is being quantised."""
    if spec.quantization is None or spec.quantization.startswith("gptq"):
        return 0
    facts, head = spec.facts, spec.front_end == "litgpt"
    sizes = (tensor.numel for tensor in facts.tensors if quantises(facts, tensor, False, head))
    return rounded(max(sizes, default=0) * DTYPE_BYTES[spec.weights_dtype])


def gpu_load(spec: Spec, held: Inventory) -> int:
    """Bytes on the GPU once the module is there.

    The engine casts on the host, then moves (``engine.py:_configure_distributed_model``); a model that the script
    moved before arrives in the dtype in which it was loaded.
    """
    return loaded_bytes(spec, held) if spec.loaded_on_gpu else held.bytes
