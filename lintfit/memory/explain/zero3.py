"""Terms of ZeRO-3."""

from __future__ import annotations

from lintfit.frozen import frozen
from lintfit.memory.engines import zero3
from lintfit.memory.engines.zero_config import ZeroConfig, optimizer_name, zero_config
from lintfit.memory.explain import flat, tensors
from lintfit.memory.explain.term import Factor, Term, term
from lintfit.memory.explain.unsharded import load, tied
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.memory.tensors.optimizers import Optimizer, optimizer
from lintfit.memory.tensors.parameters import Inventory, inventory, trained_dtype

SOURCE = "DeepSpeed stage3.py"
INIT = "DeepSpeed partition_parameters.py"
COORDINATOR = "DeepSpeed partitioned_param_coordinator.py"


@frozen
class _Case:
    spec: Spec
    config: ZeroConfig
    held: Inventory
    name: str
    entry: Optimizer
    size: zero3._Sizes

    @property
    def shared(self) -> int:
        return zero3.shared_elements(self.spec, self.held, self.size.ranks)

    @property
    def ranks(self) -> Factor:
        return self.size.ranks, "ranks"

    @property
    def left(self) -> float:
        """The share of masters and states that stays on the GPU."""
        return 1.0 if not self.config.offload_optimizer else 1.0 - self.config.offload_ratio


def terms(spec: Spec, state: str) -> list[list[Term]]:
    """Stage 3: for each moment the ways in which its largest point may come about."""
    config, held, name = zero_config(spec), inventory(spec), optimizer_name(spec)
    entry, _ = optimizer(name, spec.versions)
    case = _Case(spec, config, held, name, entry, zero3._sizes(spec, config, held, entry))
    if state == "load":
        return [_load(case)]
    if state == "initialize":
        return _initialize(case)
    steady = [*_parameters(case), *_states(case), *_gradients(case), *_bucket(case), *_secondary(case)]
    if state == "save":
        return [[*steady, *_gather(case)]]
    if state == "step":
        return [[*steady, *way] for way in _step(case)]
    fetched = zero3._Fetch.of(spec, config, held, case.size)
    if state in ("forward", "backward_start", "evaluate"):
        return [[*steady, *_turn(case, fetched.turn)]]
    inside = [*steady, *_layer(case, fetched.layer)]
    return [[*inside, *(_end(case) if state == "backward_end" else [])]]


def _shards(case: _Case) -> list[Term]:
    size, source = case.size, f"{INIT}: shards"
    factors = ((DTYPE_BYTES[trained_dtype(case.spec)], "bytes"), (case.shared, flat.TRAINED))
    found = [term("parameters", "trained weights", size.shards, *factors, over=case.ranks, source=source)]
    frozen = [weight for weight in case.held.weights if not weight.trainable]
    by_ranks = tensors.grouped(frozen, lambda weight: zero3._sharers(case.spec, size.ranks, weight))
    for ranks, weights in by_ranks.items():
        found += tensors.parameters(weights, over=(ranks, "ranks"), source=source)
    return found


def _parameters(case: _Case) -> list[Term]:
    found = [] if case.config.offload_param else _shards(case)
    threshold = case.config.persistence_threshold
    what = f"whole copies of tensors of up to {threshold:,} elements (stage3_param_persistence_threshold)"
    source = "DeepSpeed parameter_offload.py mark_persistent_parameters"
    return [*found, term("parameters", what, case.size.persistent, source=source)]


def _states(case: _Case) -> list[Term]:
    size, trained, left = case.size, case.shared, case.left
    if not left:
        return []
    kept = [(left, "of it on the GPU (offload_optimizer.ratio)")] if left != 1 else []
    return [
        flat.masters(trained, int(left * size.masters), case.ranks, SOURCE, size.master, *kept),
        flat.optimizer_states(case.name, case.entry, trained, size.shard, case.ranks, SOURCE, left, case.config.moment),
    ]


def _gradients(case: _Case) -> list[Term]:
    size, trained = case.size, case.shared
    if case.config.offload_optimizer:
        factors: tuple[Factor, ...] = ((size.master, "bytes"), (trained, flat.TRAINED), (case.left, "of it on the GPU"))
        what, total = "the optimizer's gradients of the sub-groups that stay", int(case.left * size.master * size.shard)
    else:
        accumulator = size.gradient_flat // max(1, size.shard)
        factors = ((accumulator, "bytes"), (trained, flat.TRAINED))
        what, total = "the flat gradient partition, there from initialisation on", size.gradient_flat
    return [term("gradients", what, total, *factors, over=case.ranks, source=SOURCE)]


def _bucket(case: _Case) -> list[Term]:
    each = case.size.ipg // max(1, case.config.reduce_bucket)
    factors = ((each, "bytes"), (case.config.reduce_bucket, "elements (reduce_bucket_size)"))
    return [term("communication_buffers", "the bucket of gradients", case.size.ipg, *factors, source=SOURCE)]


def _secondary(case: _Case) -> list[Term]:
    size = case.size.buffers - case.size.ipg
    if not size:
        return []
    group = min(case.config.hpz, case.size.ranks)
    factors = ((group * size, "bytes of all parameters"),)
    over = (group, "ranks of a node (zero_hpz_partition_size)")
    what = "ZeRO++'s second shard in the node"
    return [term("communication_buffers", what, size, *factors, over=over, source=f"{INIT} _partition_param_sec")]


def _turn(case: _Case, size: int) -> list[Term]:
    item = case.size.itemsize
    passes = 3 if case.spec.gradient_checkpointing else 2
    elements = case.config.max_reuse_distance
    if size == item * elements // passes and size:
        factors: tuple[Factor, ...] = ((item, "bytes"), (elements, "elements (stage3_max_reuse_distance)"))
        over = (passes, "visits of a layer")
        what = "parameters still gathered where forward turns into backward"
        return [term("communication_buffers", what, size, *factors, over=over, source=COORDINATOR)]
    what = "everything that is gathered, or the head, where forward turns into backward"
    factors = ((item, "bytes"), (size / item, "gathered parameters"))
    return [term("communication_buffers", what, size, *factors, source=COORDINATOR)]


def _layer(case: _Case, size: int) -> list[Term]:
    """The gathered layer (or the head) and what is fetched ahead, which is there twice."""
    gathers = [w for w in case.held.weights if w.numel > case.config.persistence_threshold]
    layer = int(sum(weight.storage * weight.per_layer for weight in gathers))
    head = max((weight.storage for weight in gathers if weight.role == "lm_head" or weight.words), default=0)
    everything = sum(weight.storage * weight.copies for weight in gathers)
    gathered = min(size, everything, max(layer, head))
    what = "one gathered layer" if layer >= head else "the gathered head"
    item = case.size.itemsize
    found = [
        term(
            "communication_buffers",
            what,
            gathered,
            (item, "bytes"),
            (gathered / item, "parameters"),
            source=COORDINATOR,
        )
    ]
    ahead = size - gathered
    if ahead:
        what = "layers fetched ahead (stage3_prefetch_bucket_size and the module that reaches it)"
        factors = ((2, "flat buffer and parameters"), (item, "bytes"), (ahead / 2 / item, "parameters"))
        found.append(term("communication_buffers", what, ahead, *factors, source=COORDINATOR))
    return found


def _end(case: _Case) -> list[Term]:
    size, config, item = case.size, case.config, case.size.itemsize
    flush = item * min(config.reduce_bucket, case.held.trainable) if size.ranks > 1 else 0
    whole = item * size.largest_trainable
    found = [
        term("temporaries", "the last gradient", whole, (item, "bytes"), (size.largest_trainable, "elements")),
        *tied(case.spec, case.held),
    ]
    oversized = size.ranks > 1 and size.largest_trainable > config.reduce_bucket
    reduced = max(flush, whole if oversized else 0)
    if reduced:
        factors = ((item, "bytes"), (reduced // item, "elements"))
        what = "gradients being reduced and scattered"
        found.append(term("communication_buffers", what, reduced, *factors, source=SOURCE))
    return found


def _step(case: _Case) -> list[list[Term]]:
    size = case.size
    if case.config.offload_optimizer:
        return [[]]
    group = (size.sub_group, "elements of the largest sub-group (sub_group_size)")
    accumulator = size.gradient_flat // max(1, size.shard)
    own = term(
        "temporaries", "its gradients flat", accumulator * size.sub_group, (accumulator, "bytes"), group, source=SOURCE
    )
    item = size.master
    converted = term("temporaries", "and in fp32", item * size.sub_group, (item, "bytes"), group, source=SOURCE)
    half = accumulator != item
    own_step = flat.step(case.name, case.entry, size.sub_group, group[1], item=item)
    return [[own, *([converted] if half else [])], [converted if half else own, *own_step]]


def _gather(case: _Case) -> list[Term]:
    if not case.config.gather_on_save:
        return []
    factors = ((case.size.itemsize, "bytes"), (case.size.largest, "elements of the largest tensor"))
    what = "one gathered tensor at a time (stage3_gather_16bit_weights_on_model_save)"
    size = case.size.itemsize * case.size.largest
    return [
        term("temporaries", what, size, *factors, source="DeepSpeed engine.py _zero3_consolidated_16bit_state_dict")
    ]


def _load(case: _Case) -> list[Term]:
    if case.spec.loaded_on_gpu or not case.spec.made_in_parts:
        return load(case.spec, case.held, whole=case.spec.loaded_on_gpu)
    factors = ((case.size.itemsize, "bytes"), (case.size.largest, "elements of the largest tensor"))
    whole = term(
        "temporaries", "one whole tensor before it is sharded", case.size.itemsize * case.size.largest, *factors
    )
    return [*([] if case.config.offload_param else _shards(case)), *_secondary(case), whole]


def _initialize(case: _Case) -> list[list[Term]]:
    size = case.size
    shards = [] if case.config.offload_param else _shards(case)
    bucket = [*_bucket(case), *_secondary(case)]
    if case.config.offload_optimizer:
        return [[*shards, *bucket]]
    masters = flat.masters(case.shared, size.masters, case.ranks, SOURCE, size.master)
    group = ((size.master, "bytes"), (size.sub_group, "elements of the largest sub-group (sub_group_size)"))
    again = size.master * size.sub_group
    copy = term("temporaries", "a second copy of a sub-group's masters", again, *group, source=SOURCE)
    zeros = term("temporaries", "zero gradients of a sub-group", again, *group, source=SOURCE)
    return [[*shards, *_secondary(case), masters, copy], [*shards, masters, *_gradients(case), *bucket, zeros]]
