"""Every parameter tensor of one rank: the model's own and what PEFT adds, trainable or frozen, quantised or not."""

from __future__ import annotations

from lintfit.memory.lora import adapters, saved_modules
from lintfit.memory.quantization import gptq_group, quantised_tensor, quantises
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.memory.weights import (
    BLOCK,
    Inventory,
    Weight,
    has_separate_experts,
    loaded_dtype,
    local_tensors,
    model_dtype,
    rounded,
)

__all__ = ["BLOCK", "Inventory", "Weight", "inventory", "loaded_dtype", "model_dtype", "rounded"]


def inventory(spec: Spec) -> Inventory:
    """Every parameter tensor of one rank in the dtype in which it trains."""
    dtype, full = model_dtype(spec), spec.method == "full"
    legacy = has_separate_experts(spec)
    weights = []
    for tensor, per_layer in local_tensors(spec):
        storage = tensor.numel * DTYPE_BYTES[dtype]
        if spec.quantization and quantises(tensor, legacy):
            storage = quantised_tensor(tensor, spec.quantization, gptq_group(spec.facts.config))
        weights.append(
            Weight(tensor.name, tensor.shape, tensor.copies, dtype, full, storage, tensor.role, tensor.where, per_layer)
        )
    if not full:
        weights += [*adapters(spec), *saved_modules(spec)]
    return Inventory.of(tuple(weights))
