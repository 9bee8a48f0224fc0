"""Every parameter tensor of one rank: the model's own and what PEFT adds, trainable or frozen, quantised or not."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import replace
from lintfit.memo import Memo
from lintfit.memory.alike import on_any_gpu
from lintfit.memory.spec import DTYPE_BYTES, SCORING, Dtype, Spec
from lintfit.memory.tensors.frozen_parts import frozen_parts, within
from lintfit.memory.tensors.lora import adapters, saved_modules
from lintfit.memory.tensors.quantization import gptq_group, kept, parted, quantised_tensor, quantises
from lintfit.memory.tensors.tensor_parallel import splits_embedding
from lintfit.memory.tensors.weights import (
    BLOCK,
    UNREACHED,
    VALUE,
    Inventory,
    Weight,
    adapter_dtype,
    has_separate_experts,
    kbit_upcast,
    keeps_fp32,
    loaded_dtype,
    local_tensors,
    model_dtype,
    quantises_fused_experts,
    rounded,
    trained_dtype,
    value_facts,
)

__all__ = ["BLOCK", "Inventory", "Weight", "inventory", "loaded_dtype", "model_dtype", "rounded", "trained_dtype"]


_OF: Memo[Inventory] = Memo()
_FOUND: Memo[tuple[ModelFacts | None, Inventory]] = Memo()
"""With PPO's value model, whose identity is in the key."""


def inventory(spec: Spec) -> Inventory:
    """Every parameter tensor of one rank in the dtype in which it trains.

    Counted once for the same model and settings: the parts of an estimate ask for it again and again.
    """
    return _OF.get(on_any_gpu(spec), "", lambda: _known(spec))


def _known(spec: Spec) -> Inventory:
    """The same for runs that differ in what has nothing to do with weights."""
    key: tuple[object, ...] = (
        model_dtype(spec),
        spec.quantization,
        has_separate_experts(spec),
        quantises_fused_experts(spec),
        spec.tensor_parallel,
        splits_embedding(spec),
        spec.pipeline_parallel,
        spec.pipeline_stage,
        spec.expert_parallel,
        spec.method,
        spec.trainer in SCORING,
        spec.front_end,
        kbit_upcast(spec),
        keeps_fp32(spec),
    )
    if spec.frozen_modules:
        key = (*key, spec.frozen_modules)
    value = value_facts(spec) if spec.trainer == "ppo" else None
    if value is not None:
        key = (*key, id(value))
    if spec.method == "lora":
        key = (
            *key,
            spec.lora_rank,
            spec.lora_targets,
            spec.lora_modules_to_save,
            adapter_dtype(spec),
            spec.use_dora,
        )
    return _FOUND.get(spec.facts, key, lambda: (value, _count(spec)))[1]


def _count(spec: Spec) -> Inventory:
    plain, full = model_dtype(spec), spec.method == "full"
    upcast, wide = kbit_upcast(spec), keeps_fp32(spec)
    legacy, whole_experts = has_separate_experts(spec), quantises_fused_experts(spec)
    unreached = UNREACHED.get(spec.facts.model_type, ())
    left = frozen_parts(spec)
    weights: list[Weight] = []
    for whole, per_layer in local_tensors(spec):
        values = whole.name.startswith(VALUE)
        litgpt = spec.front_end == "litgpt"
        replaced = bool(spec.quantization) and not values and quantises(spec.facts, whole, legacy, litgpt)
        replaced = replaced or (whole_experts and whole.role == "expert")
        stored = spec.facts.stored if spec.quantization and not values else None
        for tensor, quantised in parted(whole, stored, replaced):
            cast = not quantised and not values and (upcast == "all" or (upcast == "norms" and tensor.role == "norm"))
            dtype: Dtype = "fp32" if cast or (wide and kept(spec.facts, tensor)) else plain
            storage = tensor.numel * DTYPE_BYTES[dtype]
            if spec.quantization and quantised:
                storage = quantised_tensor(tensor, spec.quantization, gptq_group(spec.facts.config), whole_experts)
            weights += _of_layers(
                Weight(
                    tensor.name,
                    tensor.shape,
                    tensor.copies,
                    dtype,
                    values or (full and tensor.name not in left.names and not within(tensor.name, unreached)),
                    storage,
                    tensor.role,
                    tensor.where,
                    per_layer * tensor.copies / whole.copies,
                    unreached=full and within(tensor.name, unreached) and tensor.name not in left.names,
                ),
                0 if values else len(left.layers),
                spec.facts.layers,
            )
    if not full:
        added = [*adapters(spec), *saved_modules(spec)]
        weights += [
            replace(weight, trainable=False, unreached=True) if within(weight.name, unreached) else weight
            for weight in added
        ]
    return Inventory.of(tuple(weights))


def _of_layers(weight: Weight, count: int, layers: int) -> tuple[Weight, ...]:
    """A weight of all ``layers`` in two: that of the layers which train, and of the ``count`` which are frozen.

    Both have their share of one layer, so that together they have all of it.
    """
    if weight.where != "layer" or not 0 < count < layers:
        return (weight,)
    frozen = weight.copies * count // layers
    return (
        replace(weight, copies=weight.copies - frozen, per_layer=weight.per_layer * (layers - count) / layers),
        replace(weight, copies=frozen, per_layer=weight.per_layer * count / layers, trainable=False, unreached=False),
    )
