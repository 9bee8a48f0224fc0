"""DeepSpeed without ZeRO (stage 0): plain data parallelism and the engine's own optimizer wrappers."""

from __future__ import annotations

from lintfit.memory.components import components
from lintfit.memory.engines.gradients import largest_gradient, tied_gradient
from lintfit.memory.engines.host import host_memory
from lintfit.memory.engines.loading import gpu_load, load_temporary
from lintfit.memory.engines.states import States
from lintfit.memory.engines.zero_config import optimizer_name
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.memory.tensors.optimizers import (
    flat_state_bytes,
    flat_step_temporaries,
    optimizer,
    state_bytes,
    step_temporaries,
)
from lintfit.memory.tensors.parameters import Inventory, trained_dtype

REDUCE_ELEMENTS = 500_000_000
"""Elements of one all-reduce at stage 0 (``engine.py:buffered_allreduce_fallback``, ``elements_per_buffer``)."""


def zero0(spec: Spec, held: Inventory) -> States:
    """Bytes of one rank at stage 0.

    fp32, or half precision that DeepSpeed was not told of: the optimizer works on the parameters themselves.
    bf16 or fp16 enabled: ``FP16_Optimizer`` keeps flat fp32 masters, and its step makes an fp32 copy of every
    gradient and a flat copy of those while the half-precision gradients are still there (fused_optimizer.py
    ``step``); other optimizers than FusedAdam get per-tensor masters (unfused_optimizer.py).
    """
    name = optimizer_name(spec)
    entry, not_modelled = optimizer(name, spec.versions)
    itemsize = DTYPE_BYTES[trained_dtype(spec)]
    gradients = held.trainable_bytes
    mixed = spec.mixed_precision != "no"
    fused = name in ("adam", "adamw")
    if mixed:
        masters = 4 * held.trainable
        optimizer_states = flat_state_bytes(entry, held.trainable)
    else:
        masters = 0
        optimizer_states = state_bytes(entry, held.weights)
    steady = components(
        parameters=held.bytes if not (mixed and fused) else held.frozen_bytes + itemsize * held.trainable,
        master_weights=masters,
        optimizer_states=optimizer_states,
    )
    between = {**steady, **components(gradients=gradients if spec.gradient_accumulation_steps > 1 else 0)}
    full = {**steady, **components(gradients=gradients)}
    bucket = itemsize * min(REDUCE_ELEMENTS + held.largest_trainable, held.trainable) if spec.gpus > 1 else 0
    if not mixed:
        temporaries = step_temporaries(entry, held.weights)
    elif fused:
        temporaries = 4 * held.trainable + 4 * max(held.decayed, held.trainable - held.decayed)
    else:
        temporaries = 4 * held.trainable + flat_step_temporaries(entry, held.decayed)
    return States(
        load=components(parameters=gpu_load(spec, held), temporaries=load_temporary(spec)),
        initialize={**steady, **components(gradients=4 * held.trainable if mixed else 0)},
        forward=between,
        backward_start=between,
        first_gradient=between,
        backward_end={
            **full,
            **components(
                communication_buffers=bucket,
                temporaries=tied_gradient(spec, held) + (largest_gradient(held) if between != steady else 0),
            ),
        },
        reduced=full,
        step={**full, **components(temporaries=temporaries)},
        evaluate=steady,
        save=steady,
        host=host_memory(spec, held),
        not_modelled=not_modelled,
    )
