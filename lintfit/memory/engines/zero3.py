"""ZeRO-3: parameters, gradients and states sharded (deepspeed stage3.py, partition_parameters.py)."""

from __future__ import annotations

from lintfit.frozen import frozen
from lintfit.memory.components import components, larger
from lintfit.memory.engines.gradients import tied_gradient
from lintfit.memory.engines.host import RankHost, host_memory
from lintfit.memory.engines.loading import gpu_load, load_temporary
from lintfit.memory.engines.states import States
from lintfit.memory.engines.zero_config import ZeroConfig, optimizer_name
from lintfit.memory.result import Components
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.memory.tensors.expert_parallel import sharers
from lintfit.memory.tensors.optimizers import Optimizer, flat_state_bytes, flat_step_temporaries, optimizer
from lintfit.memory.tensors.parameters import Inventory, Weight, model_dtype, rounded, trained_dtype
from lintfit.memory.tensors.tensor_parallel import share


@frozen
class _Sizes:
    """Bytes of the parts; ``shard``, ``sub_group`` and ``largest`` count elements, ``tensors`` trainable tensors.

    ``secondary`` is each tensor of hpZ's second shard.
    """

    ranks: int
    itemsize: int
    master: int
    shard: int
    shards: int
    frozen_shards: int
    persistent: int
    secondary: tuple[int, ...]
    masters: int
    states: int
    gradient_flat: int
    ipg: int
    buffers: int
    sub_group: int
    largest: int
    largest_trainable: int
    tensors: int


def zero3(spec: Spec, config: ZeroConfig, held: Inventory) -> States:
    """Bytes of one rank at stage 3.

    Steady: shards of all parameters (and whole copies of those below the persistence threshold), fp32 masters and
    states of the shard, the flat gradient partition and the IPG bucket, both there from initialisation on. The
    passes gather parameters module by module; the step works one sub-group at a time. hpZ's second shard is there from
    the load on: the step drops that of trained parameters when it is done, and whoever gathers them next makes it anew.
    """
    entry, not_modelled = optimizer(optimizer_name(spec), spec.versions)
    size = _sizes(spec, config, held, entry)
    on_gpu = not config.offload_optimizer
    # offload_optimizer.ratio leaves the first sub-groups' masters and states on the GPU.
    left = 1.0 if on_gpu else 1.0 - config.offload_ratio
    steady = components(
        parameters=(size.frozen_shards + size.shards if not config.offload_param else 0) + size.persistent,
        master_weights=int(left * size.masters),
        optimizer_states=int(left * size.states),
        gradients=size.gradient_flat if on_gpu else int(left * size.master * size.shard),
        communication_buffers=size.buffers,
    )
    fetched = _Fetch.of(spec, config, held, size)
    forward = _with_buffers(steady, size, fetched.turn)
    running = _with_buffers(steady, size, fetched.layer)
    flush = size.itemsize * min(config.reduce_bucket, held.trainable) if size.ranks > 1 else 0
    whole = size.itemsize * size.largest_trainable
    oversized = whole if size.largest_trainable > config.reduce_bucket and size.ranks > 1 else 0
    end = {
        **_with_buffers(steady, size, fetched.layer + max(flush, oversized)),
        **components(temporaries=whole + tied_gradient(spec, held)),
    }
    rank_host = _host(config, size)
    return States(
        load=_load(spec, held, size, config),
        initialize=_initialize(config, size, on_gpu),
        forward=forward,
        backward_start=forward,
        first_gradient=running,
        backward_end=end,
        reduced=steady,
        step=_step(config, entry, size, steady),
        evaluate=forward,
        save={**steady, **components(temporaries=size.itemsize * size.largest if config.gather_on_save else 0)},
        host=host_memory(spec, held, rank_host),
        rank_host=rank_host,
        not_modelled=not_modelled,
    )


def _with_buffers(steady: Components, size: _Sizes, gathered: int) -> Components:
    return {**steady, **components(communication_buffers=size.buffers + gathered)}


def _sizes(spec: Spec, config: ZeroConfig, held: Inventory, entry: Optimizer) -> _Sizes:
    world = spec.sharding_ranks
    ranks = config.mics if 0 < config.mics < world else world
    itemsize, trained = DTYPE_BYTES[model_dtype(spec)], DTYPE_BYTES[trained_dtype(spec)]
    # Gradients travel in the enabled precision, in fp32 where there is none (engine.py communication_data_type).
    travels = 4 if spec.mixed_precision == "no" else itemsize
    shard = sum(-(-weight.numel // _sharers(spec, ranks, weight)) * weight.copies for weight in held.trainables)
    frozen = sum(
        rounded(-(-weight.storage // _sharers(spec, ranks, weight))) * weight.copies
        for weight in held.weights
        if not weight.trainable
    )
    accumulates = DTYPE_BYTES[config.grad_accum_dtype] if config.grad_accum_dtype else 0
    # Gradients gather in the enabled precision whatever the parameters are (engine.py get_data_types).
    accumulator = accumulates or (trained if spec.mixed_precision == "no" else itemsize)
    ipg = travels * config.reduce_bucket if config.contiguous_gradients else 0
    second = _secondary(config, held, ranks, trained)
    return _Sizes(
        ranks=ranks,
        itemsize=itemsize,
        master=config.master,
        shard=shard,
        shards=rounded(trained * shard),
        frozen_shards=frozen,
        persistent=_persistent(config, held) if ranks > 1 or config.offload_param else 0,
        secondary=second,
        # fp32 parameters are copied, too: the test for sharing compares a torch.device with its name (stage3.py
        # _create_fp32_partitions), which is never equal.
        masters=config.master * shard,
        states=flat_state_bytes(entry, shard, config.moment),
        gradient_flat=accumulator * shard,
        ipg=ipg,
        buffers=ipg + (0 if config.offload_param else sum(map(rounded, second))),
        sub_group=_sub_group(config, held, ranks, shard),
        largest=held.largest,
        largest_trainable=held.largest_trainable,
        tensors=sum(weight.copies for weight in held.trainables),
    )


def _sharers(spec: Spec, ranks: int, weight: Weight) -> int:
    """Ranks that share a tensor.

    What AutoTP leaves whole stays shared by all ranks where ``zero.Init`` has partitioned it before
    (``engine.py:_resolve_zero3_param_placement``); the rest is the data-parallel ranks'.
    """
    found = sharers(spec, ranks, weight)
    whole = spec.tensor_parallel > 1 and spec.zero3_init and share(spec, weight) == (1, 1)
    return found * spec.tensor_parallel if whole else found


def shared_elements(spec: Spec, held: Inventory, ranks: int) -> int:
    """Trained elements as the ranks share them: of one rank's share as many times as there are ranks."""
    if spec.expert_parallel == spec.tensor_parallel == 1:
        return held.trainable
    return sum(weight.total * ranks // _sharers(spec, ranks, weight) for weight in held.trainables)


def _secondary(config: ZeroConfig, held: Inventory, ranks: int, trained: int) -> tuple[int, ...]:
    """Bytes of each tensor of hpZ's second shard (``partition_parameters.py:_partition_param_sec``).

    It is made for any group of more than one rank, also where that is all ranks, whatever the persistence threshold.
    """
    if config.hpz <= 1:
        return ()
    group = min(config.hpz, ranks)
    found: list[int] = []
    for weight in held.weights:
        size = weight.numel * trained if weight.trainable else weight.storage
        found += [-(-size // ranks) * ranks // group] * weight.copies
    return tuple(found)


def _sub_group(config: ZeroConfig, held: Inventory, ranks: int, shard: int) -> int:
    """Elements of the largest sub-group: it closes with the tensor that reaches ``sub_group_size``."""
    if config.sub_group >= shard:
        decayed = -(-held.decayed // ranks)
        return min(shard, max(decayed, shard - decayed))
    return min(shard, config.sub_group + held.largest_trainable // ranks)


def _persistent(config: ZeroConfig, held: Inventory) -> int:
    """Bytes of the whole copies of small parameters (``parameter_offload.py:mark_persistent_parameters``)."""
    elements = size = 0
    for weight in held.weights:
        if weight.numel > config.persistence_threshold:
            continue
        room = max(0, config.model_persistence_threshold - elements) // max(1, weight.numel)
        copies = min(weight.copies, room)
        elements += copies * weight.numel
        size += copies * rounded(weight.storage)
    return size


@frozen
class _Fetch:
    """Bytes of gathered parameters: ``turn`` where forward becomes backward, ``layer`` inside the backward."""

    turn: int
    layer: int

    @classmethod
    def of(cls, spec: Spec, config: ZeroConfig, held: Inventory, size: _Sizes) -> _Fetch:
        """What the coordinator keeps gathered (partitioned_param_coordinator.py), from the third step on.

        A module is not released while it recurs within ``max_reuse_distance`` elements of the recorded trace. At
        the turn the trace runs on through the backward, where under checkpointing every layer comes twice, so that
        the last half (third) of that distance stays gathered. The next modules are prefetched up to the bucket;
        a fetch holds its flat buffer and the parameters cut from it at once.
        """
        if size.ranks == 1 and not config.offload_param:
            return cls(0, 0)
        gathers = [w for w in held.weights if w.numel > config.persistence_threshold]
        everything = sum(weight.storage * weight.copies for weight in gathers)
        head = max((weight.storage for weight in gathers if weight.role == "lm_head" or weight.words), default=0)
        layer = int(sum(weight.storage * weight.per_layer for weight in gathers))
        prefetch = size.itemsize * config.prefetch_bucket
        passes = 3 if spec.gradient_checkpointing else 2
        retained = size.itemsize * config.max_reuse_distance // passes
        turn = min(everything, max(retained, head))
        flight = 2 * min(prefetch + _largest_in_layer(gathers), everything)
        return cls(turn=turn, layer=min(everything, max(layer, head)) + min(flight, everything))


def _largest_in_layer(gathers: list[Weight]) -> int:
    return max((weight.storage for weight in gathers if weight.where == "layer"), default=0)


def _load(spec: Spec, held: Inventory, size: _Sizes, config: ZeroConfig) -> Components:
    """The shards and one whole parameter on its way; everything where a whole model gets there first.

    The script moves it, or DeepSpeed does with what ``zero.Init`` has not made (engine.py
    ``_configure_distributed_model``), before it shards that tensor by tensor.
    """
    if spec.loaded_on_gpu or not spec.made_in_parts:
        return components(parameters=gpu_load(spec, held), temporaries=load_temporary(spec))
    shards = 0 if config.offload_param else size.shards + size.frozen_shards
    second = size.buffers - size.ipg
    return components(parameters=shards, communication_buffers=second, temporaries=size.itemsize * size.largest)


def _initialize(config: ZeroConfig, size: _Sizes, on_gpu: bool) -> Components:
    """Masters being made (two fp32 copies of one sub-group at once), then the zero gradients of the largest one."""
    parameters = 0 if config.offload_param else size.shards + size.frozen_shards
    if not on_gpu:
        return components(parameters=parameters, communication_buffers=size.buffers)
    flat = components(
        parameters=parameters,
        master_weights=size.masters,
        communication_buffers=size.buffers - size.ipg,
        temporaries=size.master * size.sub_group,
    )
    done = components(
        parameters=parameters,
        master_weights=size.masters,
        gradients=size.gradient_flat,
        communication_buffers=size.buffers,
    )
    return larger(flat, {**done, **components(temporaries=size.master * size.sub_group)})


def _step(config: ZeroConfig, entry: Optimizer, size: _Sizes, steady: Components) -> Components:
    """One sub-group: its gradients flat, then in fp32 (``_prepare_fp32_grad_for_sub_group``), then the optimizer."""
    if config.offload_optimizer:
        return steady
    accumulator = size.gradient_flat // max(1, size.shard)
    flat = accumulator * size.sub_group
    converted = size.master * size.sub_group if accumulator != size.master else 0
    stepping = (converted or flat) + flat_step_temporaries(entry, size.sub_group, size.master)
    return {**steady, **components(temporaries=max(flat + converted, stepping))}


def _host(config: ZeroConfig, size: _Sizes) -> RankHost:
    """What one rank keeps on the host and on NVMe under offload.

    ``offload_param``: the shards in one page-locked buffer a parameter group (locked whatever ``pin_memory`` says,
    stage3.py ``_create_param_groups_fp16_flat_cpu_memory``), and hpZ's second shard (locked where ``pin_memory``).
    ``offload_optimizer``: masters and states (not locked), and fp32 gradients a sub-group and the flat gradient
    partition (locked where ``pin_memory``). With ``ratio`` below 1 that share of the sub-groups stays on the GPU.
    """
    locked: list[int] = []
    plain = nvme = 0
    if config.offload_param:
        in_memory = size.shards
        if config.nvme_param:
            in_memory = min(size.shards, size.itemsize * config.max_in_cpu)
            nvme += size.shards - in_memory
            locked += [size.itemsize * config.param_buffer_size] * config.param_buffers
        locked.append(in_memory)
        plain += size.frozen_shards
        if config.pin_param:
            locked += size.secondary
        else:
            plain += sum(size.secondary)
    if config.offload_optimizer:
        share = config.offload_ratio
        groups = max(1, min(size.tensors, -(-size.shard // max(1, config.sub_group))))
        gradients = [int(share * size.master * size.shard) // groups] * groups + [size.gradient_flat]
        if config.nvme_optimizer:
            nvme += size.masters + size.states + size.master * size.shard
            locked += [size.master * size.sub_group] * config.optimizer_buffers
            gradients = [size.gradient_flat]
        else:
            plain += int(share * (size.masters + size.states))
        if config.pin_optimizer:
            locked += gradients
        else:
            plain += sum(gradients)
    return RankHost(tuple(locked), plain, nvme)
