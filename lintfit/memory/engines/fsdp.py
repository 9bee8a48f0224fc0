"""FSDP 1 and 2: shards between the passes, whole units while they are used.

A unit is one decoder layer (transformer wrapping); embeddings, head and the last norm form the root unit, which
stays gathered from its first use to the end of the backward. Without a policy that wraps layers the whole model is the
root unit.
"""

from __future__ import annotations

from typing import NamedTuple

from lintfit.frozen import frozen, replace
from lintfit.memo import Memo
from lintfit.memory.components import components
from lintfit.memory.engines.gradients import tied_gradient
from lintfit.memory.engines.host import RankHost, host_memory, ranks_per_node
from lintfit.memory.engines.loading import load_temporary, loaded_bytes
from lintfit.memory.engines.states import States
from lintfit.memory.result import Components
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.memory.tensors.frozen_parts import frozen_parts
from lintfit.memory.tensors.lora import flattens_adapters
from lintfit.memory.tensors.optimizers import optimizer, resident_bytes, step_temporaries
from lintfit.memory.tensors.parameters import Inventory, Weight, inventory, rounded
from lintfit.memory.versions import since
from lintfit.settings.values import Fsdp


@frozen
class Unit:
    """Bytes of one unit: gathered for compute, and the gathered gradient of its trainable part."""

    gathered: int
    gradient: int


class Gathered(NamedTuple):
    """Bytes of parameters that are gathered: in the forward, at the loss's backward, inside a layer's backward, where
    that ends if more is there then, and at the end of the backward."""

    forward: int
    turn: int
    layer: int
    layer_end: int | None
    end: int


def fsdp(spec: Spec) -> States:
    """Bytes of one rank under FSDP.

    With mixed precision Accelerate upcasts trainable parameters to fp32 before it shards them (accelerator.py
    ``prepare_model``, fsdp_utils.py ``fsdp2_prepare_model``): 16 bytes a parameter over the ranks, gathered in half
    precision. Without it all stays in the dtype of the weights.
    """
    offload = spec.fsdp is not None and spec.fsdp.cpu_offload
    held = stored(spec)
    shard = sharded(held, sharers(spec))
    stepped = optimized(spec, shard)
    entry, not_modelled = optimizer(spec.optimizer, spec.versions)
    states = resident_bytes(entry, stepped.weights)
    steady = {} if offload else components(parameters=shard.bytes, optimizer_states=states)
    reduced = {**steady, **components(gradients=0 if offload else shard.trainable_bytes)}
    stepping = {} if offload else components(temporaries=step_temporaries(entry, stepped.weights))
    rank_host = _on_host(spec, held, shard, states) if offload else RankHost()
    gathered = _gathered(spec, held)
    layer, root = units(spec, held)
    kept = components(gradients=accumulated(spec, held, shard) if spec.gradient_accumulation_steps > 1 else 0)
    forward = {**steady, **kept, **components(communication_buffers=gathered.forward)}
    inside = {**steady, **kept, **components(temporaries=_pieces(spec, layer))}
    late = _pieces(spec, root) + tied_gradient(spec, stepped)
    ended: Components = {**reduced, **components(communication_buffers=gathered.end, temporaries=late)}
    if one_unit(spec):
        ended = _all_at_the_end(spec, held, {**steady, **kept}, tied_gradient(spec, stepped))
    return States(
        load=_load(spec, held, shard),
        initialize={**steady, **components(communication_buffers=max(layer.gathered, root.gathered))},
        forward=forward,
        backward_start={**forward, **components(communication_buffers=gathered.turn)},
        first_gradient={**inside, **components(communication_buffers=gathered.layer)},
        layer_end=None
        if gathered.layer_end is None
        else {**inside, **components(communication_buffers=gathered.layer_end)},
        backward_end=ended,
        reduced=reduced,
        step={**reduced, **stepping},
        evaluate={**steady, **components(communication_buffers=gathered.forward)},
        save=_save(spec, held, steady, reduced),
        host=host_memory(spec, held, rank_host),
        rank_host=rank_host,
        not_modelled=not_modelled,
    )


def one_unit(spec: Spec) -> bool:
    """Whether the whole model is one unit that the ranks gather at once."""
    return not (spec.fsdp or Fsdp()).auto_wrap and sharers(spec) > 1


def whole_gradient(spec: Spec, held: Inventory) -> int:
    """Bytes of all gradients before they are reduced, in the gathered dtype."""
    return sum(gathered_bytes(spec, weight) for weight in held.weights if weight.trainable)


def flat_gradient(spec: Spec, held: Inventory) -> int:
    """Bytes of the one flat gradient that FSDP 1 makes of those of all parameters, whose views they are.

    FSDP 2 copies them into the input of its reduction when the parameters are gone (``FSDPParamGroup.post_backward``
    reshards first), which takes no more than these took.
    """
    return whole_gradient(spec, held) if (spec.fsdp or Fsdp()).version == 1 else 0


def _all_at_the_end(spec: Spec, held: Inventory, steady: Components, tied: int) -> Components:
    """The end of the backward of one unit: no gradient is reduced before the last one is made."""
    gradients = steady.get("gradients", 0) + whole_gradient(spec, held)
    flat = flat_gradient(spec, held)
    gathered = units(spec, held)[1].gathered
    return {**steady, **components(gradients=gradients, communication_buffers=gathered + flat, temporaries=tied)}


def _on_host(spec: Spec, held: Inventory, shard: Inventory, states: int) -> RankHost:
    """CPU offload: shards and their gradients in page-locked blocks, the optimizer states beside them.

    FSDP 1 locks the flat shard of every unit and as much again for its gradient, of a frozen unit too
    (``_flat_param.py`` ``init_flat_param_attributes``: ``_cpu_grad``). FSDP 2 locks every parameter's shard, and the
    gradient of what is trained. Block constants of a quantised base are no parameters.
    """
    first = (spec.fsdp or Fsdp()).version == 1
    blocks: list[int] = []
    inside = outside = constants = 0
    layers = 1
    for whole, weight in zip(held.weights, shard.weights, strict=True):
        beside = whole.storage - _packed(whole) if whole.quantised else 0
        size = weight.storage - beside
        constants += beside * weight.copies
        if not first or (wraps_adapters(spec) and weight.trainable):
            blocks += [size] * weight.copies * (2 if weight.trainable else 1)
        elif weight.per_layer:
            inside += size * weight.copies
            layers = max(layers, round(weight.copies / weight.per_layer))
        else:
            outside += size * weight.copies
    if first:
        blocks += 2 * ([inside + outside] if one_unit(spec) else [inside // layers] * layers + [outside])
    return RankHost(tuple(blocks), constants + states)


def _save(spec: Spec, held: Inventory, steady: Components, reduced: Components) -> Components:
    """What is there while a full state dict is made.

    FSDP 1 drops the flat gradients only at the next forward (``flat_param.py:_reset_flat_param_grad_info_if_needed``),
    whatever ``zero_grad`` did.
    """
    first = (spec.fsdp or Fsdp()).version == 1
    return {**(reduced if first else steady), **components(temporaries=saved(spec, held))}


def _pieces(spec: Spec, unit: Unit) -> int:
    """Bytes of a unit's gradient while its pieces, which are views of one flat gradient, are there with that."""
    return 2 * unit.gradient if sharers(spec) > 1 else 0


HELD_BACK = (1, 11)
"""The accelerate version from which ``no_sync`` stops FSDP 2's reductions (accelerate#3762): before, it asked for a
method of this name, which modules of FSDP 2 do not have."""


def reduces_each(spec: Spec) -> bool:
    """Whether the gradients of every micro-batch are reduced, not only those of the last."""
    return spec.sync_each_batch or ((spec.fsdp or Fsdp()).version == 2 and not since(spec, "accelerate", HELD_BACK))


def accumulated(spec: Spec, held: Inventory, shard: Inventory) -> int:
    """Bytes of the gradients that earlier micro-batches leave: whole, not sharded, in the gathered dtype.

    HF's Trainer and Accelerate run all but the last micro-batch under ``no_sync`` (``sync_each_batch`` is off by
    default), where FSDP keeps the unreduced gradients of every unit. Those that are reduced are shards, which CPU
    offload moves to the host.
    """
    if reduces_each(spec):
        return 0 if (spec.fsdp or Fsdp()).cpu_offload else shard.trainable_bytes
    return int(sum(gathered_bytes(spec, weight) for weight in held.weights if weight.trainable))


def sharers(spec: Spec) -> int:
    """Ranks that a parameter is divided over: also those that share a sequence (Accelerate's mesh ``dp_shard_cp``)."""
    strategy = (spec.fsdp or Fsdp()).strategy
    if strategy == "NO_SHARD":
        return 1
    replicas = spec.fsdp.replicas if spec.fsdp is not None else 1
    ranks = max(1, spec.sharding_ranks // replicas)
    if strategy.startswith("HYBRID"):
        return min(ranks, ranks_per_node(spec))
    return ranks


_STORED: Memo[Inventory] = Memo()
_SHARDED: Memo[Inventory] = Memo()
_FLATTENED: Memo[Inventory] = Memo()


def stored(spec: Spec) -> Inventory:
    """All parameters in the dtype in which their shards are kept, before sharding; ``trainable`` are those that get a
    gradient."""
    held = flattened(spec, inventory(spec))
    if spec.mixed_precision == "no" or not _upcasts(spec):
        return held
    return _STORED.get(held, "", lambda: _upcast(held))


_UPCASTS = (0, 30)
"""The first accelerate whose ``prepare_model`` upcasts what FSDP 1 trains (0.29 does not)."""
_BY_ACCELERATE = (4, 31)
"""The first transformers whose Trainer has Accelerate wrap the model; before, it called FSDP itself
(4.29 ``Trainer._wrap_model``), which keeps the weights as they are loaded."""


def _upcasts(spec: Spec) -> bool:
    version_2 = spec.fsdp is not None and spec.fsdp.version == 2
    return version_2 or (since(spec, "accelerate", _UPCASTS) and since(spec, "transformers", _BY_ACCELERATE))


def flattened(spec: Spec, held: Inventory) -> Inventory:
    """FSDP 1 makes one parameter of a unit: what is frozen in it has its dtype and its gradient where anything there is
    trained (``_flat_param.py:_validate_tensors_to_flatten``, ``use_orig_params``)."""
    mixed = tuple(unit for unit in _flat_units(spec) if len({part.trainable for part in _parts(held, unit)}) > 1)
    return _FLATTENED.get(held, mixed, lambda: _all_trained(held, mixed)) if mixed else held


LAYERS, ROOT = (True,), (False,)
"""Kinds of units by what they hold: tensors of layers, all others; one unit for all has both."""


def _flat_units(spec: Spec) -> tuple[tuple[bool, ...], ...]:
    """Units that may hold what is frozen beside what is trained. A full fine-tuning freezes layers whole, and PEFT's
    adapters are units of their own, unless the model is one unit."""
    if (spec.fsdp or Fsdp()).version != 1 or (spec.method != "full" and spec.quantization is not None):
        return ()
    if one_unit(spec):
        return (LAYERS + ROOT,)
    if spec.method == "full":
        return (ROOT,)
    return (LAYERS, ROOT) if flattens_adapters(spec) else ()


def _parts(held: Inventory, unit: tuple[bool, ...]) -> list[Weight]:
    return [weight for weight in held.weights if bool(weight.per_layer) in unit]


def _all_trained(held: Inventory, units: tuple[tuple[bool, ...], ...]) -> Inventory:
    kinds = {kind for unit in units for kind in unit}
    return Inventory.of(
        tuple(replace(weight, trainable=True) if bool(weight.per_layer) in kinds else weight for weight in held.weights)
    )


def optimized(spec: Spec, shard: Inventory) -> Inventory:
    """Of shards what the optimizer of the rank with most steps as ``trainable``.

    Frozen parts of a flat parameter have no gradient of their own; and as it is cut from end to end, a rank may have
    only trained ones of it, up to its whole share.
    """
    parts = tuple(zip(inventory(spec).weights, shard.weights, strict=True))
    if all(own.trainable == part.trainable for own, part in parts):
        return shard
    most = dict.fromkeys(LAYERS + ROOT, 1.0)
    for unit in _flat_units(spec):
        inside = [(own, part) for own, part in parts if bool(own.per_layer) in unit]
        trained = sum(part.total for own, part in inside if own.trainable)
        if trained:
            share = min(float(sharers(spec)), sum(part.total for _, part in inside) / trained)
            most.update(dict.fromkeys(unit, share))
    return Inventory.of(tuple(_with_share(part, own.trainable, most[bool(own.per_layer)]) for own, part in parts))


def _with_share(part: Weight, trainable: bool, times: float) -> Weight:
    """A shard so many times as large, if it is trained."""
    if not trainable or times == 1:
        return replace(part, trainable=trainable)
    numel = int(part.numel * times)
    return replace(part, shape=(numel,), storage=numel * DTYPE_BYTES[part.dtype])


def _upcast(held: Inventory) -> Inventory:
    """The same with everything trained in fp32."""
    return Inventory.of(tuple(weight.cast("fp32") if weight.trainable else weight for weight in held.weights))


def sharded(held: Inventory, ranks: int) -> Inventory:
    """The shard of one rank: every tensor divided evenly, rounded up to whole elements.

    Of a 4-bit weight the packed values are divided; its block constants belong to the quantisation state,
    which every rank keeps whole (bitsandbytes ``QuantState`` is no parameter).
    """
    return _SHARDED.get(held, ranks, lambda: Inventory.of(tuple(_shard(weight, ranks) for weight in held.weights)))


def _shard(weight: Weight, ranks: int) -> Weight:
    numel = -(-weight.numel // ranks)
    if weight.quantised:
        packed = _packed(weight)
        return replace(weight, storage=-(-packed // ranks) + weight.storage - packed)
    return replace(weight, shape=(numel,), storage=numel * DTYPE_BYTES[weight.dtype])


def _packed(weight: Weight) -> int:
    """Bytes of one copy of a quantised weight, whole, without the constants of its blocks."""
    return weight.numel // 2 if weight.storage < weight.numel else weight.numel


def gathered_bytes(spec: Spec, weight: Weight) -> int:
    """Bytes of all copies of a weight, gathered for compute."""
    return int(_gathered_one(spec, weight) * weight.copies)


def _gathered_one(spec: Spec, weight: Weight) -> int:
    if weight.quantised:
        return _packed(weight)
    dtype = spec.mixed_precision if spec.mixed_precision != "no" else weight.dtype
    return weight.numel * DTYPE_BYTES[dtype]


def units(spec: Spec, held: Inventory) -> tuple[Unit, Unit]:
    """The largest layer, which is a trained one if any is, and the root unit; nothing and the model if that is one."""
    if one_unit(spec):
        whole = sum(gathered_bytes(spec, weight) for weight in held.weights)
        return Unit(0, 0), Unit(whole, whole_gradient(spec, held))
    trained = 1 - len(frozen_parts(spec).layers) / spec.facts.layers
    layer = gradient = root = root_gradient = 0.0
    for weight in held.weights:
        size = _gathered_one(spec, weight)
        if weight.per_layer:
            layer += size * weight.per_layer
            gradient += size * weight.per_layer * weight.trainable
        else:
            root += size * weight.copies
            root_gradient += size * weight.copies * weight.trainable
    return Unit(int(layer), int(gradient / trained) if trained else 0), Unit(int(root), int(root_gradient))


def _gathered(spec: Spec, held: Inventory) -> Gathered:
    """What is gathered in the passes.

    Inside the backward the next unit is prefetched (``BACKWARD_PRE``; FSDP 2 always). ``SHARD_GRAD_OP`` keeps what the
    forward gathered until its backward.
    """
    if sharers(spec) == 1:
        return Gathered(0, 0, 0, None, 0)
    layer, root = units(spec, held)
    if one_unit(spec):
        return Gathered(forward_copies(spec) * root.gathered, root.gathered, root.gathered, None, root.gathered)
    whole = sum(gathered_bytes(spec, weight) for weight in held.weights)
    if (spec.fsdp or Fsdp()).gathers == 1:
        return Gathered(whole, whole, whole, None, root.gathered)
    both = root.gathered + layer.gathered
    if wraps_adapters(spec):
        end = both + layer.gathered if both < whole else None
        return Gathered(root.gathered, root.gathered, both, end, root.gathered)
    return Gathered(root.gathered, root.gathered, both + layer.gathered, None, root.gathered)


def forward_copies(spec: Spec) -> int:
    """How often one unit for all is there in the forward: FSDP 2 keeps the flat buffer that it was gathered in beside
    the parameters until another unit is gathered, or the forward is over (``FSDPParamGroup.wait_for_unshard``)."""
    return 2 if (spec.fsdp or Fsdp()).version == 2 else 1


def wraps_adapters(spec: Spec) -> bool:
    """Whether the unit after a layer in the backward is one adapter matrix rather than the layer below.

    FSDP 1 needs units whose parameters are all trained or all frozen, so PEFT's wrapping policy
    (``fsdp_auto_wrap_policy``) makes a unit of every adapter matrix. These end inside their layer's forward, so
    that in the reverse order of the backward they stand between it and the layer below, and ``BACKWARD_PRE``
    prefetches the layer below only when the layer's first adapter is reached.
    """
    first = (spec.fsdp or Fsdp()).version == 1
    return spec.method == "lora" and first and not one_unit(spec) and not flattens_adapters(spec)


SAVES_ON_HOST = (4, 30)
"""The first transformers version that takes FSDP's full state dict to the host unit by unit (``FullStateDictConfig``).
Before, ``Trainer.save_model`` called ``model.state_dict()``, for which every rank copies every unit on its GPU: runs on
A100-40GB, A100-80GB and V100 train and die as they save (LLaVA#177, FastChat#256, transformers#23386)."""


def copies_to_save(spec: Spec) -> bool:
    """Whether every rank copies the whole model on its GPU to save it."""
    first = (spec.fsdp or Fsdp()).version == 1
    return first and (spec.saves_on_gpu or not since(spec, "transformers", SAVES_ON_HOST))


def saved(spec: Spec, held: Inventory) -> int:
    """Bytes that a full state dict takes on the GPU, in the shards' own dtype."""
    return unit_stored(spec, held) + (held.bytes if copies_to_save(spec) else 0)


def unit_stored(spec: Spec, held: Inventory) -> int:
    """Bytes of the largest unit in the shards' own dtype, as a full state dict gathers it. FSDP 2 gathers parameters
    one by one."""
    if one_unit(spec) and (spec.fsdp or Fsdp()).version == 1:
        return held.bytes
    layer = int(sum(rounded(weight.storage) * weight.per_layer for weight in held.weights))
    root = sum(weight.bytes for weight in held.weights if not weight.per_layer)
    return max(layer, root)


def _load(spec: Spec, held: Inventory, shard: Inventory) -> Components:
    """Shards and one unit on its way, or the whole model where the script moved it to the GPU first.

    With CPU offload the shard of a unit goes back to the host before the next unit comes (FSDP1:
    ``_init_param_handle_from_params``; FSDP2 never brings it to the GPU).
    """
    if spec.loaded_on_gpu:
        return components(parameters=loaded_bytes(spec, held), temporaries=load_temporary(spec))
    offloaded = spec.fsdp is not None and spec.fsdp.cpu_offload
    return components(
        parameters=0 if offloaded else shard.bytes, temporaries=unit_stored(spec, held) + load_temporary(spec)
    )
