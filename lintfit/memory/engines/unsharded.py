"""One process, or DDP: every rank holds all parameters, gradients and optimizer states."""

from __future__ import annotations

from lintfit.memory.components import components
from lintfit.memory.engines.ddp import broadcast_bytes, bucket_bytes, reduces, views_buckets
from lintfit.memory.engines.gradients import largest_gradient, tied_gradient, unreduced_gradient
from lintfit.memory.engines.host import RankHost, host_memory
from lintfit.memory.engines.loading import load_temporary, loaded_bytes
from lintfit.memory.engines.saving import reordered
from lintfit.memory.engines.states import States
from lintfit.memory.engines.zeroing import added_to, in_backward, stay_behind_step, stay_in_forward
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.optimizers import optimizer, resident_bytes, state_bytes, step_temporaries
from lintfit.memory.tensors.parameters import inventory


def unsharded(spec: Spec) -> States:
    """Bytes of one rank without sharding.

    Weights, gradients and states of torch's optimizers all take the parameter's dtype: bf16 weights with AdamW
    are 2 + 2 + 4 bytes a parameter, fp32 weights 4 + 4 + 8, with or without autocast.
    """
    held = inventory(spec)
    entry, not_modelled = optimizer(spec.optimizer, spec.versions)
    parameters = held.bytes
    optimizer_states = resident_bytes(entry, held.weights)
    buckets = bucket_bytes(held) if reduces(spec) else 0
    gradients = held.trainable_bytes + unreduced_gradient(spec)
    largest = largest_gradient(held)
    if in_backward(spec):
        gradients = largest
    elif views_buckets(spec):
        gradients = unreduced_gradient(spec)
    steady = components(
        parameters=parameters,
        optimizer_states=optimizer_states,
        communication_buffers=buckets,
    )
    full = {**steady, **components(gradients=gradients)}
    between = full if added_to(spec) else steady
    late = tied_gradient(spec, held) + (largest if added_to(spec) or views_buckets(spec) else 0)
    step = {**full, **components(temporaries=step_temporaries(entry, held.weights))}
    rank_host = RankHost(plain=state_bytes(entry, held.weights) - optimizer_states if entry.paged else 0)
    return States(
        load=components(parameters=loaded_bytes(spec, held), temporaries=load_temporary(spec)),
        initialize=components(
            parameters=parameters,
            communication_buffers=buckets,
            temporaries=broadcast_bytes(held) if buckets else 0,
        ),
        forward=full if stay_in_forward(spec) else steady,
        backward_start=between,
        first_gradient=between,
        backward_end={**full, **components(temporaries=late)},
        reduced=full,
        step=step if not in_backward(spec) else {**full},
        evaluate=full if stay_behind_step(spec) else steady,
        save={**(full if stay_behind_step(spec) else steady), **components(temporaries=reordered(spec, held))},
        host=host_memory(spec, held, rank_host),
        rank_host=rank_host,
        not_modelled=not_modelled,
    )
