"""LoRA and DoRA adapters, and the modules that PEFT trains whole beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from lintfit.catalog.defaults import lora_targets
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace
from lintfit.memory.litgpt import adapter_shapes, switches
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.memory.tensors.fused_experts import MAPPED, fused, names
from lintfit.memory.tensors.tensor_parallel import GATHERED_ATTENTION, GATHERED_MLP, WHOLE_ATTENTION
from lintfit.memory.tensors.weights import (
    VALUE,
    Weight,
    adapter_dtype,
    has_fused_experts,
    has_separate_experts,
    local_tensors,
    model_dtype,
)
from lintfit.settings.values import Fsdp

FALLBACK_TARGETS = ("q_proj", "v_proj")
"""PEFT's choice for the Llama family (``TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING``)."""


def module_name(tensor: Tensor) -> str:
    """The dotted name of the module that a parameter belongs to."""
    return tensor.name.rpartition(".")[0]


def _named(module: str, names: tuple[str, ...]) -> bool:
    return any(module == name or module.endswith(f".{name}") for name in names)


def _within(module: str, names: tuple[str, ...]) -> bool:
    """Whether a module is one of the named ones, or a part of one: PEFT copies a module with all that it holds."""
    return any(f".{name}." in f".{module}." for name in names)


def adapts(tensor: Tensor, targets: tuple[str, ...] | str) -> bool:
    """Whether PEFT puts an adapter on this tensor's module.

    ``all-linear`` takes every linear layer but the output layer (peft ``_maybe_include_all_linear_layers``);
    names match whole or after a dot (``check_target_module_exists``). Experts fused into one three-dimensional
    parameter are no linear layers.
    """
    if not tensor.name.endswith(".weight") or len(tensor.shape) != 2:
        return False
    if targets == "all-linear":
        return tensor.role in ("linear", "expert", "router")
    return _named(module_name(tensor), tuple(targets))


def without_module(spec: Spec) -> str:
    """What the stated targets are and what the model's linear modules are called, where none is among these.

    Empty where an adapter is made, where nobody states targets, and where the model's modules are not known.
    """
    targets = spec.lora_targets
    if spec.method != "lora" or targets is None or isinstance(targets, str) or not spec.facts.exact:
        return ""
    if any(True for _ in adapters(spec)):
        return ""
    linear = (module_name(each) for each in spec.facts.tensors if each.role in ("linear", "expert"))
    known = dict.fromkeys(name.rpartition(".")[2] for name in linear)
    return f"{', '.join(targets)} names no module of {spec.facts.name}; its linear modules are {', '.join(known)}"


def flattens_adapters(spec: Spec) -> bool:
    """Whether FSDP 1 makes one parameter of a layer with its adapters, which then has a gradient of all of it.

    PEFT's policy wraps adapters by themselves (``fsdp_auto_wrap_policy``), and transformers' Trainer takes it. LitGPT
    wraps its blocks alone (``finetune/lora.py`` until August 2025), as do loops of a script's own.
    """
    sharding = spec.fsdp or Fsdp()
    if spec.engine != "fsdp" or sharding.version != 1 or spec.method != "lora" or spec.quantization is not None:
        return False
    return spec.front_end == "litgpt" or not sharding.adapters_apart


def targets_of(spec: Spec) -> tuple[str, ...] | str:
    """The adapted modules: as stated, else PEFT's table by model type."""
    return spec.lora_targets if spec.lora_targets is not None else default_targets(spec.facts.model_type)


def default_targets(model_type: str) -> tuple[str, ...]:
    """PEFT's own choice of modules for a model type; the query and value projections where it has none."""
    return lora_targets(model_type) or FALLBACK_TARGETS


def adapters(spec: Spec) -> Iterator[Weight]:
    """LoRA's A (rank x in) and B (out x rank) of every adapted module; DoRA's magnitude vector (out)."""
    if spec.front_end == "litgpt":
        yield from _litgpt_adapters(spec)
        return
    targets = targets_of(spec)
    for tensor, per_layer in _adaptable(spec):
        for name, shape in _shapes(spec, tensor, targets):
            full, held = f"{module_name(tensor)}.{name}", tensor.holders - tensor.idle
            yield _trained(spec, full, shape, _held(tensor, held), per_layer * held)
            if tensor.idle:
                idle = _trained(spec, full, shape, _held(tensor, tensor.idle), per_layer * tensor.idle)
                # No gradient ever comes for them; buckets, flat partitions and shards have room for one all the same.
                yield replace(idle, trainable=spec.engine != "single")


def _held(tensor: Tensor, modules: int) -> Tensor:
    """A tensor as so many modules hold it, each of which PEFT gives an adapter of its own."""
    return tensor if modules == 1 else replace(tensor, copies=tensor.copies * modules)


SPLIT_BY_COLUMNS = frozenset({"gate_proj", "k_proj", "q_proj", "up_proj", "v_proj"})
"""Modules whose adapters PEFT 0.21 runs where transformers splits the model (``add_lora_tp_hooks_dtensor``): those of
the other kinds of plans, split by rows or gathered, fail in the forward, as all do with FSDP 2 besides."""


def unadapted(spec: Spec) -> str:
    """Why adapters cannot be put on a model that ranks split, else nothing (``bench/ranks/tensor_parallel.py``)."""
    if spec.tensor_parallel == 1 or spec.method != "lora":
        return ""
    if spec.engine == "deepspeed":
        return "tensor parallelism: AutoTP puts its own layers in the place of those with adapters, and training fails"
    if spec.engine == "fsdp":
        return "tensor parallelism: PEFT's adapters fail in the forward with tensor parallelism and FSDP 2"
    if spec.use_dora or spec.facts.model_type in GATHERED_ATTENTION | GATHERED_MLP | WHOLE_ATTENTION:
        return "tensor parallelism: adapters on a model whose plan gathers or leaves out projections, or DoRA's"
    adapted = {adapter.name.rpartition(".")[0].rpartition(".")[2] for adapter in adapters(spec)}
    others = sorted(adapted - SPLIT_BY_COLUMNS)
    return f"tensor parallelism: PEFT's adapters on {', '.join(others)} fail in the forward" if others else ""


def _adaptable(spec: Spec) -> Iterator[tuple[Tensor, float]]:
    """The tensors of the model that PEFT wraps: not those of PPO's value model, which trains whole."""
    return (found for found in local_tensors(spec) if not found[0].name.startswith(VALUE))


def _litgpt_adapters(spec: Spec) -> Iterator[Weight]:
    facts = spec.facts
    for name, shape, where in adapter_shapes(facts, switches(spec.lora_targets), spec.lora_rank):
        layers = -(-facts.layers // spec.pipeline_parallel)
        tensor = Tensor(name, shape, copies=layers if where == "layer" else 1, where=where)  # type: ignore[arg-type]
        yield _trained(spec, name, shape, tensor, 1.0 if where == "layer" else 0.0)


def _shapes(spec: Spec, tensor: Tensor, targets: tuple[str, ...] | str) -> list[tuple[str, tuple[int, ...]]]:
    rank = spec.lora_rank
    if tensor.role == "expert" and len(tensor.shape) == 3:
        return _expert_shapes(spec, tensor, targets)
    if tensor.role == "conv" and tensor.where == "vision":
        return _patch_shapes(spec, tensor, targets)
    if not (_adapts_beside_experts(spec, tensor, targets) if has_fused_experts(spec) else adapts(tensor, targets)):
        return []
    rows, columns = tensor.shape
    shapes: list[tuple[str, tuple[int, ...]]] = [("lora_A", (rank, columns)), ("lora_B", (rows, rank))]
    if spec.use_dora:
        shapes.append(("lora_magnitude_vector", (rows,)))
    return shapes


def _patch_shapes(spec: Spec, tensor: Tensor, targets: tuple[str, ...] | str) -> list[tuple[str, tuple[int, ...]]]:
    """Adapters of a convolution over patches, which PEFT takes by its name (``lora.Conv2d``, ``lora.Conv3d``).

    ``all-linear`` does so only where it becomes the last parts of all linear layers' names, for models whose experts
    are fused (peft ``_resolve_string_target_modules``).
    """
    if targets == "all-linear":
        if not has_fused_experts(spec) or spec.facts.model_type not in MAPPED:
            return []
        linear = [other for other, _ in _adaptable(spec) if other.role == "linear" and other.name.endswith(".weight")]
        targets = tuple({module_name(other).rpartition(".")[2] for other in linear})
    if not tensor.name.endswith(".weight") or not _named(module_name(tensor), tuple(targets)):
        return []
    rows, *taken = tensor.shape
    return [("lora_A", (spec.lora_rank, *taken)), ("lora_B", (rows, spec.lora_rank, *[1 for _ in taken[1:]]))]


def _adapts_beside_experts(spec: Spec, tensor: Tensor, targets: tuple[str, ...] | str) -> bool:
    """The same for a model whose experts are fused (:mod:`.fused_experts`)."""
    kind = spec.facts.model_type
    found = fused(kind, None if targets == "all-linear" else tuple(targets))
    module = module_name(tensor).rpartition(".")[2]
    if module in ("gate", "router"):
        return found.router and tensor.name.endswith(".weight")
    if module in found.never:
        return False
    return adapts(tensor, targets)


def _expert_shapes(spec: Spec, tensor: Tensor, targets: tuple[str, ...] | str) -> list[tuple[str, tuple[int, ...]]]:
    """Adapters of all experts of a layer.

    PEFT maps the old names of the experts' projections onto transformers 5's fused parameters; gate and up share
    one and get twice the rank. Before, every expert's projection was a linear layer with an adapter of its own.
    """
    parameter = tensor.name.rpartition(".")[2]
    kind, named = spec.facts.model_type, None if targets == "all-linear" else tuple(targets)
    old = names(kind).down if parameter == "down_proj" else names(kind).gate_up
    if has_separate_experts(spec):
        hits = len(old) if named is None else sum(name in named for name in old)
    else:
        found = fused(kind, named)
        hits = found.down if parameter == "down_proj" else found.gate_up
    if not hits:
        return []
    experts, rows, columns = tensor.shape
    if has_separate_experts(spec):
        rows //= len(old)
    width = experts * spec.lora_rank * hits
    return [(f"{parameter}.lora_A", (width, columns)), (f"{parameter}.lora_B", (rows, width))]


PASSED_BY = dict.fromkeys(("falcon_mamba", "jamba", "mamba"), ("dt_proj",))
"""Modules whose weight a model multiplies with by itself (``self.dt_proj.weight @ time_step``), so that their adapters
never run, unless its weights are quantised."""


def _passed_by(spec: Spec, tensor: Tensor) -> bool:
    """Whether an adapter gets no gradient, and with it no optimizer state; engines that lay all gradients out flat, and
    DDP's buckets, have room for it nevertheless."""
    names = PASSED_BY.get(spec.facts.model_type, ())
    alone = spec.engine == "single"
    return alone and spec.quantization is None and _named(module_name(tensor), names)


def _trained(spec: Spec, name: str, shape: tuple[int, ...], tensor: Tensor, per_layer: float) -> Weight:
    dtype = adapter_dtype(spec)
    return Weight(
        name=name,
        shape=shape,
        copies=tensor.copies,
        dtype=dtype,
        trainable=not _passed_by(spec, tensor),
        storage=math.prod(shape) * DTYPE_BYTES[dtype],
        role="adapter",
        where=tensor.where,
        per_layer=per_layer,
    )


def saved_modules(spec: Spec) -> Iterator[Weight]:
    """The trainable copies that PEFT makes of ``modules_to_save``; the frozen originals stay.

    A tied ``lm_head`` is copied, too (``ModulesToSaveWrapper`` deep-copies the module), and no longer tied then.
    """
    dtype = model_dtype(spec)
    for tensor, per_layer in _adaptable(spec):
        module = module_name(tensor)
        words = tensor.role == "embedding" and tensor.shape[0] == spec.facts.vocab and "per_layer" not in tensor.name
        tied_head = spec.facts.tied and words and "lm_head" in spec.lora_modules_to_save
        copies = [("", tensor.role)] if _within(module, spec.lora_modules_to_save) else []
        for suffix, role in (*copies, *([(".tied", "lm_head")] if tied_head else [])):
            yield Weight(
                name=f"{module}.modules_to_save{suffix}",
                shape=tensor.shape,
                copies=tensor.copies,
                dtype=dtype,
                trainable=True,
                storage=tensor.numel * DTYPE_BYTES[dtype],
                role=role,
                where=tensor.where,
                per_layer=per_layer,
            )
