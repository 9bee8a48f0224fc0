"""ZeRO-1 and ZeRO-2: optimizer states (and gradients) sharded, parameters whole (deepspeed stage_1_and_2.py)."""

from __future__ import annotations

from lintfit.frozen import frozen
from lintfit.memory.components import components, larger
from lintfit.memory.engines.flattening import flattening
from lintfit.memory.engines.gradients import tied_gradient
from lintfit.memory.engines.host import RankHost, host_memory
from lintfit.memory.engines.loading import gpu_load, load_temporary
from lintfit.memory.engines.partitions import largest_partition
from lintfit.memory.engines.states import States
from lintfit.memory.engines.zero_config import ZeroConfig, optimizer_name
from lintfit.memory.result import Components
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.memory.tensors.expert_parallel import parts
from lintfit.memory.tensors.optimizers import Optimizer, flat_state_bytes, flat_step_temporaries, optimizer
from lintfit.memory.tensors.parameters import Inventory, rounded, trained_dtype

HOOKS_SINCE = (0, 18, 3)
"""The first DeepSpeed release whose gradients make the buckets as they come (``process_gradients``).

Before, the backward began with them (``backward``, ``backward_prologue``): they stand beside the loss's gradients.
"""

COPIES_MASTERS = ((0, 14, 1), (0, 17, 0))
"""The DeepSpeed releases from and before which an offloaded step puts the new masters on the GPU as they are, to be
cast there (``fp32_partition.to(get_accelerator().current_device_name())``)."""

ACCUMULATES_AS_IT_IS_SINCE = (0, 17, 6)
"""The first DeepSpeed release that accumulates gradients of bf16 models in bf16 at stage 0, too, and so runs
``FP16_Optimizer`` there (``engine.py:get_data_types``)."""

COPIED_FIRST_SINCE = (0, 18, 3)
"""The first DeepSpeed release that copies the own partition on the GPU before it goes to the host."""


@frozen
class _Sizes:
    """Bytes of the parts that the moments are made of; ``shard`` counts elements."""

    ranks: int
    itemsize: int
    master: int
    accumulator: int
    parameters: int
    shard: int
    masters: int
    states: int
    whole_gradients: int
    gradient_shard: int
    ipg: int
    flush: int
    largest: int


def zero12(spec: Spec, config: ZeroConfig, held: Inventory) -> States:
    """Bytes of one rank at stage 1 or 2.

    Steady: all parameters flat in the model's dtype; fp32 masters and states of one shard. The backward adds the
    IPG buckets (twice under ``overlap_comm``) from the first gradient to its end and the gradients of the own
    partition. The step copies these flat and once more in fp32.
    """
    name = optimizer_name(spec)
    entry, not_modelled = optimizer(name, spec.versions)
    size = _sizes(spec, config, held, entry)
    offload = config.offload_optimizer
    fp32_flat = _compact(config, size)
    steady = components(
        parameters=size.parameters,
        master_weights=0 if offload else size.masters,
        optimizer_states=0 if offload else size.states,
        communication_buffers=size.largest if offload else 0,
    )
    if bf16_optimizer(spec, config):
        return _bf16(spec, held, entry, size, not_modelled)
    accumulates = spec.gradient_accumulation_steps > 1
    kept = _kept_between(config, size, accumulates, fp32_flat)
    between = {**steady, **components(gradients=kept)}
    buffers = size.ipg + (size.largest if offload else 0)
    first = {**between, **components(communication_buffers=buffers)}
    gradients, late = _at_backward_end(config, size, accumulates, fp32_flat)
    end = {
        **first,
        **components(
            gradients=gradients,
            communication_buffers=buffers + size.flush,
            temporaries=late + tied_gradient(spec, held),
        ),
    }
    rank_host = _host(config, held, size, accumulates) if offload else RankHost()
    made = flattening(spec, config.version, size.parameters, size.parameters - held.frozen_bytes)
    initialize = _initialize(config, size, made.gpu)
    waiting = 4 * size.shard if fp32_flat else 0 if offload else size.gradient_shard
    return States(
        load=components(parameters=gpu_load(spec, held), temporaries=load_temporary(spec)),
        initialize=initialize,
        forward=between,
        backward_start=first if early_buckets(config) else between,
        first_gradient=first,
        backward_end=end,
        reduced={**steady, **components(gradients=waiting)},
        step=_step(spec, config, entry, size, steady, fp32_flat),
        evaluate=steady,
        save=steady,
        host=host_memory(spec, held, rank_host, made.host),
        rank_host=rank_host,
        flattening=made if made.gpu or made.perhaps else None,
        not_modelled=not_modelled,
    )


def _sizes(spec: Spec, config: ZeroConfig, held: Inventory, entry: Optimizer) -> _Sizes:
    ranks = spec.sharding_ranks
    itemsize = DTYPE_BYTES[trained_dtype(spec)]
    accumulator = DTYPE_BYTES[config.grad_accum_dtype] if config.grad_accum_dtype else itemsize
    # BF16_Optimizer knows no half-precision masters.
    master, moment = (4, 4) if bf16_optimizer(spec, config) else (config.master, config.moment)
    shared = [(part, over, flat(part.trainable, over, itemsize)) for part, over in parts(spec, held, ranks)]
    shards = [(part, over, size // itemsize // over) for part, over, size in shared]
    whole = sum(size for _, _, size in shared)
    shard = sum(elements for _, _, elements in shards)
    bucket = config.reduce_bucket
    # A gradient larger than the bucket is reduced by itself, outside the bucket's buffer.
    oversized = itemsize * held.largest_trainable if held.largest_trainable > bucket else 0
    flush = max(itemsize * min(bucket, held.trainable), oversized) if ranks > 1 else 0
    return _Sizes(
        ranks=ranks,
        itemsize=itemsize,
        master=master,
        accumulator=accumulator,
        parameters=whole + held.frozen_bytes,
        shard=shard,
        masters=master * shard,
        states=flat_state_bytes(entry, shard, moment),
        # Stage 1 keeps fp32 accumulators of every parameter beside the model (use_grad_accum_attribute).
        whole_gradients=(accumulator if config.stage == 1 else itemsize) * held.trainable,
        gradient_shard=itemsize * sum(largest_partition(part, over, elements) for part, over, elements in shards),
        ipg=itemsize * bucket * (2 if config.overlap_comm else 1) if config.contiguous_gradients else 0,
        flush=flush,
        largest=itemsize * held.largest_trainable,
    )


def _compact(config: ZeroConfig, size: _Sizes) -> bool:
    """Whether gradients accumulate in one fp32 partition (stage 2 with fp32 accumulation, since 0.19.8)."""
    return config.grad_accum_dtype == "fp32" and size.itemsize == 2


def bf16_optimizer(spec: Spec, config: ZeroConfig) -> bool:
    """Whether ``BF16_Optimizer``, which shards masters and states, runs (``engine.py:_do_optimizer_sanity_check``).

    It does in bf16 with fp32 accumulation at stage 1, and at stage 0, where fp32 was the default before
    :data:`ACCUMULATES_AS_IT_IS_SINCE`.
    """
    if spec.mixed_precision != "bf16" or config.stage > 1 or config.offload_optimizer:
        return False
    by_default = config.stage == 0 and config.grad_accum_dtype is None and config.version < ACCUMULATES_AS_IT_IS_SINCE
    return config.grad_accum_dtype == "fp32" or by_default


def _kept_between(config: ZeroConfig, size: _Sizes, accumulates: bool, fp32_flat: bool) -> int:
    """Bytes of gradients that stay on the GPU between micro-batches."""
    if not accumulates:
        return 0
    if config.stage == 1:
        return size.whole_gradients
    if fp32_flat:
        return 4 * size.shard
    return 0 if config.offload_optimizer else size.accumulator * size.shard


def _at_backward_end(config: ZeroConfig, size: _Sizes, accumulates: bool, fp32_flat: bool) -> tuple[int, int]:
    """Bytes of gradients when the last one is there, and of single-tensor temporaries beside them."""
    late = size.largest
    own = 4 * size.shard if fp32_flat else size.gradient_shard
    if config.offload_optimizer:
        # A gradient on its way to the host is converted to the masters' dtype first.
        late += size.master * size.largest // size.itemsize if size.master != size.itemsize else 0
        own = own if fp32_flat else 0
    if config.stage == 1 and (accumulates or fp32_flat or not config.overlap_comm):
        return size.whole_gradients + own, late
    return own * (2 if accumulates and not fp32_flat else 1), late


def _step(
    spec: Spec, config: ZeroConfig, entry: Optimizer, size: _Sizes, steady: Components, fp32_flat: bool
) -> Components:
    """The larger of the fp32 conversion and the optimizer's own step; earlier versions' overflow check."""
    if config.offload_optimizer:
        made = components(gradients=4 * size.shard if fp32_flat else 0, temporaries=copied_masters(config, size))
        return {**steady, **made}
    own = 4 * size.shard if fp32_flat else size.gradient_shard
    cast = size.master * size.shard if size.itemsize != size.master else 0
    copies = 0 if fp32_flat else size.itemsize * size.shard + cast
    converting = {**steady, **components(gradients=own, temporaries=copies)}
    stepping = {
        **steady,
        **components(
            gradients=size.master * size.shard, temporaries=flat_step_temporaries(entry, size.shard, size.master)
        ),
    }
    checking = {
        **steady,
        **components(gradients=own, temporaries=overflow_check(spec, config, size.largest // size.itemsize)),
    }
    return larger(converting, stepping, checking)


def copied_masters(config: ZeroConfig, size: _Sizes) -> int:
    """Bytes of the offloaded masters' copy on the GPU behind the step, of one group: next to all of them."""
    first, until = COPIES_MASTERS
    return size.master * size.shard if first <= config.version < until else 0


def overflow_check(spec: Spec, config: ZeroConfig, largest: int) -> int:
    """Bytes of the check for inf and nan in the largest gradient tensor of ``largest`` elements.

    Up to 0.19.7 it makes an fp32 copy and three masks, 11 bytes an element; fp16 always checks, bf16 since
    0.19.3 (#8035). From 0.19.8 on the check reduces to scalars (``runtime/utils.py:has_inf_or_nan``).
    """
    checks = spec.mixed_precision == "fp16" or (spec.mixed_precision == "bf16" and config.version >= (0, 19, 3))
    return 11 * largest if checks and config.version < (0, 19, 8) else 0


def _initialize(config: ZeroConfig, size: _Sizes, flat_copy: int) -> Components:
    """The flat copy of all parameters beside the originals, as far as it is on the GPU, or what comes after it.

    That is the masters while the own partition is copied for them, then their first zero gradients (on the host
    where states are offloaded).
    """
    masters = 0 if config.offload_optimizer else size.masters
    own = components(parameters=size.parameters, master_weights=masters)
    return larger(
        components(parameters=size.parameters, temporaries=flat_copy),
        {**own, **components(temporaries=copied_partition(config, size))},
        {**own, **components(gradients=masters)},
    )


def early_buckets(config: ZeroConfig) -> bool:
    """Whether the buckets are there before the first gradient is."""
    return config.version < HOOKS_SINCE


def copied_partition(config: ZeroConfig, size: _Sizes) -> int:
    """Bytes of the own partition's copy on the GPU, from which the masters are made.

    Offloaded masters are made of a partition that has gone to the host before, up to 0.18.2; since then the copy is
    made first (stage_1_and_2.py ``weights_partition``, #7700).
    """
    if config.offload_optimizer and config.version < COPIED_FIRST_SINCE:
        return 0
    return size.itemsize * size.shard


def _bf16(spec: Spec, held: Inventory, entry: Optimizer, size: _Sizes, not_modelled: tuple[str, ...]) -> States:
    """``BF16_Optimizer``: fp32 gradients of all parameters, whole on every rank, from the start on."""
    steady = components(
        parameters=size.parameters,
        master_weights=size.masters,
        optimizer_states=size.states,
        gradients=4 * size.shard * size.ranks,
    )
    # The 16-bit gradients stay until the next zero_grad (update_hp_grads with clear_lp_grads=False).
    full = {**steady, **components(gradients=(4 + size.itemsize) * size.shard * size.ranks)}
    end = {**full, **components(temporaries=tied_gradient(spec, held))}
    return States(
        load=components(parameters=gpu_load(spec, held), temporaries=load_temporary(spec)),
        initialize={**steady, **components(temporaries=size.itemsize * size.shard * size.ranks)},
        forward=steady,
        backward_start=steady,
        first_gradient=steady,
        backward_end=end,
        reduced=full,
        step={**full, **components(temporaries=flat_step_temporaries(entry, size.shard))},
        evaluate=steady,
        save=steady,
        host=host_memory(spec, held),
        not_modelled=not_modelled,
    )


LOCKS_GRADIENTS_BEFORE = (0, 10, 1)
"""The DeepSpeed version before which the optimizer's gradients on the host are page-locked whatever ``pin_memory`` says
(``initialize_optimizer_states``: ``pin_memory(…) if self.cpu_offload``)."""

LOCKS_MASTERS = ((0, 14, 1), (0, 18, 3))
"""The DeepSpeed versions from which and before which offloaded masters are page-locked whatever ``pin_memory`` says
(``if self.cpu_offload: weights_partition = …pin_memory(…)``); before these never, after them as it says."""

BUFFER_SINCE = (0, 17, 0)
"""The first DeepSpeed release that keeps a 16-bit buffer of the offloaded masters on the host, in which these are cast
(``param_buffer_of_bit16_for_cpu_offload_groups``)."""


def _host(config: ZeroConfig, held: Inventory, size: _Sizes, accumulates: bool) -> RankHost:
    """What one rank keeps on the host under ``offload_optimizer``.

    Page-locked where ``pin_memory``: the masters (by version: :data:`LOCKS_MASTERS`), a buffer of the shard in the
    model's dtype (since :data:`BUFFER_SINCE`), the optimizer's gradients (in any case before
    :data:`LOCKS_GRADIENTS_BEFORE`) and one largest gradient, and, where steps accumulate, one block for every
    parameter of the own partition. Not locked: the optimizer's states.
    """
    blocks = [size.largest]
    if config.version >= BUFFER_SINCE:
        blocks.append(size.itemsize * size.shard)
    # Half-precision gradients accumulate where the optimizer takes them.
    if accumulates and size.master == 4:
        for weight in held.trainables:
            blocks += [size.itemsize * weight.numel] * -(-weight.copies // size.ranks)
    gradients = size.master * size.shard
    first, last = LOCKS_MASTERS
    locks_masters = config.version >= first and (config.pin_optimizer or config.version < last)
    locks_gradients = config.pin_optimizer or config.version < LOCKS_GRADIENTS_BEFORE
    sides: tuple[list[int], list[int]] = ([size.states], [])
    sides[locks_masters].append(size.masters)
    sides[locks_gradients].append(gradients)
    sides[config.pin_optimizer].extend(blocks)
    plain, locked = sides
    return RankHost(tuple(locked), sum(plain))


def flat(numel: int, ranks: int, itemsize: int) -> int:
    """Bytes of a flat buffer whose length is padded to a multiple of two elements a rank."""
    alignment = 2 * ranks
    return rounded(-(-numel // alignment) * alignment * itemsize)
