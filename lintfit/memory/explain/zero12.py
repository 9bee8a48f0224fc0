"""Terms of DeepSpeed's stages 0, 1 and 2."""

from __future__ import annotations

from lintfit.frozen import frozen
from lintfit.memory.engines import zero12
from lintfit.memory.engines.flattening import flattening
from lintfit.memory.engines.zero0 import REDUCE_ELEMENTS
from lintfit.memory.engines.zero_config import ZeroConfig, optimizer_name, zero_config
from lintfit.memory.explain import flat, tensors
from lintfit.memory.explain.term import Factor, Term, term
from lintfit.memory.explain.unsharded import load, new_gradient, tied
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.memory.tensors.expert_parallel import shared_elements
from lintfit.memory.tensors.optimizers import Optimizer, optimizer
from lintfit.memory.tensors.parameters import Inventory, inventory, trained_dtype

SOURCE = "DeepSpeed stage_1_and_2.py"


def stage_0(spec: Spec, state: str) -> list[list[Term]]:
    """Plain data parallelism; masters and fp32 states only where DeepSpeed was told of a half precision."""
    held, name = inventory(spec), optimizer_name(spec)
    entry, _ = optimizer(name, spec.versions)
    if state == "load":
        return [load(spec, held, whole=spec.loaded_on_gpu)]
    mixed = spec.mixed_precision != "no"
    wrapper = "DeepSpeed fused_optimizer.py" if name in ("adam", "adamw") else "DeepSpeed unfused_optimizer.py"
    states = (
        [
            flat.masters(held.trainable, 4 * held.trainable, None, wrapper),
            flat.optimizer_states(name, entry, held.trainable, held.trainable, None, wrapper),
        ]
        if mixed
        else _separate_states(name, entry, held)
    )
    steady = [*tensors.parameters(held.weights, source="DeepSpeed engine.py casts the module"), *states]
    gradients = tensors.gradients(held.weights)
    accumulates = spec.gradient_accumulation_steps > 1
    if state == "initialize":
        what = "zero gradients of the masters in the wrapper's first step"
        factors = ((4, "bytes"), (held.trainable, flat.TRAINED))
        zero = term("gradients", what, 4 * held.trainable, *factors, source=wrapper)
        return [[*steady, zero] if mixed else steady]
    if state in ("evaluate", "save"):
        return [steady]
    if state in ("forward", "backward_start", "first_gradient"):
        return [[*steady, *(gradients if accumulates else [])]]
    if state == "backward_end":
        late = [*tied(spec, held), *(new_gradient(held) if accumulates else [])]
        return [[*steady, *gradients, *_all_reduce(spec, held), *late]]
    return [[*steady, *gradients, *_step_0(spec, held, name, entry, wrapper)]]


def _separate_states(name: str, entry: Optimizer, held: Inventory) -> list[Term]:
    found = tensors.optimizer_states(name, entry, held.weights)
    if not entry.paged:
        return found
    from lintfit.memory.tensors.optimizers import state_bytes

    return [term("optimizer_states", f"{name}: {tensors.states(entry)}", state_bytes(entry, held.weights))]


def _all_reduce(spec: Spec, held: Inventory) -> list[Term]:
    if spec.gpus < 2:
        return []
    item = DTYPE_BYTES[trained_dtype(spec)]
    numel = min(REDUCE_ELEMENTS + held.largest_trainable, held.trainable)
    factors = ((item, "bytes"), (numel, "elements of one all-reduce"))
    source = "DeepSpeed engine.py buffered_allreduce_fallback"
    return [term("communication_buffers", "gradients flat, for the all-reduce", item * numel, *factors, source=source)]


def _step_0(spec: Spec, held: Inventory, name: str, entry: Optimizer, wrapper: str) -> list[Term]:
    if spec.mixed_precision == "no":
        return tensors.step(name, entry, held.weights)
    factors = ((4, "bytes"), (held.trainable, flat.TRAINED))
    copies = [term("temporaries", "an fp32 copy of every gradient", 4 * held.trainable, *factors, source=wrapper)]
    if name in ("adam", "adamw"):
        group = max(held.decayed, held.trainable - held.decayed)
        more = ((4, "bytes"), (group, "parameters of the larger group"))
        return [*copies, term("temporaries", "these copies made flat", 4 * group, *more, source=wrapper)]
    return [*copies, *flat.step(name, entry, held.decayed, "parameters with weight decay")]


@frozen
class _Case:
    """A run at stage 1 or 2 with its sizes."""

    spec: Spec
    config: ZeroConfig
    held: Inventory
    name: str
    entry: Optimizer
    size: zero12._Sizes

    @property
    def ranks(self) -> Factor:
        return self.size.ranks, "ranks"

    @property
    def shared(self) -> int:
        return shared_elements(self.spec, self.held)

    @property
    def compact(self) -> bool:
        return zero12._compact(self.config, self.size)

    @property
    def accumulates(self) -> bool:
        return self.spec.gradient_accumulation_steps > 1


def stages_1_2(spec: Spec, state: str) -> list[list[Term]]:
    """Stage 1 or 2, or ``BF16_Optimizer``: for each moment the ways in which its largest point may come about."""
    config, held, name = zero_config(spec), inventory(spec), optimizer_name(spec)
    entry, _ = optimizer(name, spec.versions)
    case = _Case(spec, config, held, name, entry, zero12._sizes(spec, config, held, entry))
    if state == "load":
        return [load(spec, held, whole=spec.loaded_on_gpu)]
    if zero12.bf16_optimizer(spec, config):
        return [_bf16(case, state)]
    if state == "initialize":
        return _initialize(case)
    steady = [*_parameters(case), *_states(case)]
    if state in ("evaluate", "save"):
        return [[*steady, *_on_its_way(case)]]
    if state in ("forward", "backward_start", "first_gradient"):
        begun = state == "first_gradient" or (state == "backward_start" and zero12.early_buckets(config))
        return [[*steady, *_on_its_way(case), *_between(case), *(_buckets(case) if begun else [])]]
    if state == "backward_end":
        return [[*steady, *_on_its_way(case), *_buckets(case), *_flush(case), *_end(case)]]
    return [[*steady, *_on_its_way(case), *way] for way in _step(case)]


def _parameters(case: _Case) -> list[Term]:
    source = f"{SOURCE}: whole on every rank"
    factors = ((case.size.itemsize, "bytes"), (case.held.trainable, flat.TRAINED))
    size = case.size.itemsize * case.held.trainable
    frozen = [weight for weight in case.held.weights if not weight.trainable]
    trained = term("parameters", "trained weights, flat in the model's dtype", size, *factors, source=source)
    return [trained, *tensors.parameters(frozen, source=source)]


def _states(case: _Case) -> list[Term]:
    if case.config.offload_optimizer:
        return []
    size, trained, item = case.size, case.shared, case.config.moment
    return [
        flat.masters(trained, size.masters, case.ranks, SOURCE, size.master),
        flat.optimizer_states(case.name, case.entry, trained, size.shard, case.ranks, SOURCE, item=item),
    ]


def _on_its_way(case: _Case) -> list[Term]:
    if not case.config.offload_optimizer:
        return []
    factors = ((case.size.itemsize, "bytes"), (case.held.largest_trainable, "elements of the largest tensor"))
    what = "a gradient on its way to the host"
    return [term("communication_buffers", what, case.size.largest, *factors, source=SOURCE)]


def _whole(case: _Case) -> Term:
    item = case.size.accumulator if case.config.stage == 1 else case.size.itemsize
    factors = ((item, "bytes"), (case.held.trainable, flat.TRAINED))
    what = "stage 1 keeps the gradients of all parameters"
    return term("gradients", what, case.size.whole_gradients, *factors, source=SOURCE)


def _shard(case: _Case, item: int, what: str, component: str = "gradients") -> Term:
    factors = ((item, "bytes"), (case.shared, flat.TRAINED))
    return term(component, what, item * case.size.shard, *factors, over=case.ranks, source=SOURCE)


def _partition(case: _Case, copies: int = 1) -> Term:
    """Gradients of the tensors that touch the own partition, each whole."""
    numel = case.size.gradient_shard // case.size.itemsize
    factors: list[Factor] = [(case.size.itemsize, "bytes"), (numel, "elements of tensors in the largest partition")]
    if copies > 1:
        factors.append((copies, "copies while accumulating"))
    what = "reduced gradients of the own partition, tensors whole"
    return term("gradients", what, copies * case.size.gradient_shard, *factors, source=SOURCE)


def _between(case: _Case) -> list[Term]:
    if not case.accumulates:
        return []
    if case.config.stage == 1:
        return [_whole(case)]
    if case.compact:
        return [_shard(case, 4, "gradients accumulated in one fp32 partition")]
    if case.config.offload_optimizer:
        return []
    return [_shard(case, case.size.accumulator, "accumulated gradients of the own partition")]


def _buckets(case: _Case) -> list[Term]:
    config, size = case.config, case.size
    if not size.ipg:
        return []
    factors: list[Factor] = [(size.itemsize, "bytes"), (config.reduce_bucket, "elements (reduce_bucket_size)")]
    if config.overlap_comm:
        factors.append((2, "buckets (overlap_comm)"))
    return [term("communication_buffers", "contiguous gradients", size.ipg, *factors, source=SOURCE)]


def _flush(case: _Case) -> list[Term]:
    size, bucket = case.size, case.config.reduce_bucket
    if not size.flush:
        return []
    factors: tuple[Factor, ...] = ((size.itemsize, "bytes"), (size.flush // size.itemsize, "elements"))
    oversized = case.held.largest_trainable > bucket
    what = "the largest gradient, which passes the bucket by" if oversized else "the last bucket being reduced"
    return [term("communication_buffers", what, size.flush, *factors, source=SOURCE)]


def _end(case: _Case) -> list[Term]:
    size, config = case.size, case.config
    item = size.itemsize
    largest = (case.held.largest_trainable, "elements of the largest tensor")
    found = [term("temporaries", "the last gradient", size.largest, (item, "bytes"), largest)]
    if config.offload_optimizer and size.master != item:
        converted = size.master * size.largest // item
        what = "its fp32 copy on the way to the host"
        found.append(term("temporaries", what, converted, (size.master, "bytes"), largest, source=SOURCE))
    found += tied(case.spec, case.held)
    compact = case.compact
    own: list[Term] = []
    if compact:
        own = [_shard(case, 4, "gradients accumulated in one fp32 partition")]
    elif not config.offload_optimizer:
        own = [_partition(case)]
    if config.stage == 1 and (case.accumulates or compact or not config.overlap_comm):
        return [*found, _whole(case), *own]
    if own and case.accumulates and not compact:
        return [*found, _partition(case, 2)]
    if not own and case.accumulates:
        return [*found, *_between(case)]
    return [*found, *own]


def _step(case: _Case) -> list[list[Term]]:
    size, config = case.size, case.config
    accumulated = _shard(case, 4, "gradients accumulated in one fp32 partition")
    if config.offload_optimizer:
        copied = [_shard(case, size.master, "the new masters, to be cast", "temporaries")]
        return [[*([accumulated] if case.compact else []), *(copied if zero12.copied_masters(config, size) else [])]]
    own = [accumulated] if case.compact else [_partition(case)]
    converting = list(own)
    if not case.compact:
        converting.append(_shard(case, size.itemsize, "the own partition's gradients made flat", "temporaries"))
        if size.itemsize != size.master:
            converting.append(_shard(case, size.master, "and their fp32 copy", "temporaries"))
    stepping = [
        _shard(case, size.master, "gradients of the own partition in the masters' dtype"),
        *flat.step(case.name, case.entry, size.shard, "elements of a partition", item=size.master),
    ]
    largest = size.largest // size.itemsize
    check = zero12.overflow_check(case.spec, config, largest)
    factors = ((11, "bytes"), (largest, "elements of the largest tensor"))
    checking = [*own, term("temporaries", "the check for inf and nan", check, *factors, source=SOURCE)]
    return [converting, stepping, checking]


def _initialize(case: _Case) -> list[list[Term]]:
    size = case.size
    whole = size.itemsize * size.shard * size.ranks
    factors = ((size.itemsize, "bytes"), (case.held.trainable, flat.TRAINED))
    what = "the flat copy of all parameters, for which the GPU has room"
    copy = term("temporaries", what, whole, *factors, source=f"{SOURCE} flatten_on_accelerator")
    own = _parameters(case)
    offloads = case.config.offload_optimizer
    made = [] if offloads else [flat.masters(case.shared, size.masters, case.ranks, SOURCE, size.master)]
    first = zero12.copied_partition(case.config, size)
    copied = [_shard(case, size.itemsize, "the own partition being copied", "temporaries")] if first else []
    zero = [_shard(case, size.master, "zero gradients of the masters")] if made else []
    on_gpu = flattening(case.spec, case.config.version, size.parameters, size.parameters - case.held.frozen_bytes).gpu
    flattened = [[*own, copy]] if on_gpu else []
    return [*flattened, own, [*own, *made, *copied], [*own, *made, *zero]]


def _bf16(case: _Case, state: str) -> list[Term]:
    """``BF16_Optimizer``."""
    size, trained = case.size, case.shared
    source = "DeepSpeed bf16_optimizer.py"
    fp32 = ((4, "bytes"), (trained, flat.TRAINED))
    steady = [
        *_parameters(case),
        flat.masters(trained, size.masters, case.ranks, source),
        flat.optimizer_states(case.name, case.entry, trained, size.shard, case.ranks, source),
        term("gradients", "fp32 gradients of everything", 4 * size.shard * size.ranks, *fp32, source=source),
    ]
    half = ((size.itemsize, "bytes"), (trained, flat.TRAINED))
    flattened = size.itemsize * size.shard * size.ranks
    if state == "initialize":
        return [*steady, term("temporaries", "the flat copy of all parameters", flattened, *half, source=source)]
    if state in ("backward_end", "step"):
        steady.append(term("gradients", "16-bit gradients until zero_grad", flattened, *half, source=source))
    if state == "backward_end":
        steady += tied(case.spec, case.held)
    if state == "step":
        steady += flat.step(case.name, case.entry, size.shard, "elements of a partition", source)
    return steady
