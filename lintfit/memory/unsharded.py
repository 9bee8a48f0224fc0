"""One process, or DDP: every rank holds all parameters, gradients and optimizer states."""

from __future__ import annotations

from lintfit.memory.components import components
from lintfit.memory.ddp import broadcast_bytes, bucket_bytes
from lintfit.memory.host import RankHost, host_memory
from lintfit.memory.optimizers import optimizer, resident_bytes, state_bytes, step_temporaries
from lintfit.memory.parameters import Inventory, inventory, loaded_dtype, rounded
from lintfit.memory.quantization import quantises
from lintfit.memory.spec import DTYPE_BYTES, Spec
from lintfit.memory.states import States


def unsharded(spec: Spec) -> States:
    """Bytes of one rank without sharding.

    Weights, gradients and states of torch's optimizers all take the parameter's dtype: bf16 weights with AdamW
    are 2 + 2 + 4 bytes a parameter, fp32 weights 4 + 4 + 8, with or without autocast.
    """
    held = inventory(spec)
    entry, not_modelled = optimizer(spec.optimizer)
    parameters = held.bytes
    optimizer_states = resident_bytes(entry, held.weights)
    buckets = bucket_bytes(held) if spec.engine == "ddp" and spec.gpus > 1 else 0
    gradients = held.trainable_bytes
    largest = largest_gradient(held)
    if spec.optimizer_in_backward:
        gradients = largest
    steady = components(
        parameters=parameters,
        optimizer_states=optimizer_states,
        communication_buffers=buckets,
    )
    accumulates = spec.gradient_accumulation_steps > 1 and not spec.optimizer_in_backward
    between = {**steady, **components(gradients=gradients if accumulates else 0)}
    full = {**steady, **components(gradients=gradients)}
    late = tied_gradient(spec, held) + (largest if accumulates else 0)
    step = {**full, **components(temporaries=step_temporaries(entry, held.weights))}
    rank_host = RankHost(plain=state_bytes(entry, held.weights) - optimizer_states if entry.paged else 0)
    return States(
        load=components(parameters=loaded_bytes(spec, held), temporaries=load_temporary(spec)),
        initialize=components(
            parameters=parameters,
            communication_buffers=buckets,
            temporaries=broadcast_bytes(held) if buckets else 0,
        ),
        forward=between,
        backward_start=between,
        first_gradient=between,
        backward_end={**full, **components(temporaries=late)},
        reduced=full,
        step=step if not spec.optimizer_in_backward else {**full},
        evaluate=steady,
        save=steady,
        host=host_memory(spec, held, rank_host),
        rank_host=rank_host,
        not_modelled=not_modelled,
    )


def loaded_bytes(spec: Spec, held: Inventory) -> int:
    """Bytes of a full copy of the model as loaded, without adapters."""
    base = held
    if spec.method == "lora":
        base = Inventory.of(tuple(weight for weight in held.weights if not _added(weight.name)))
    return base.cast(loaded_dtype(spec)).bytes


def _added(name: str) -> bool:
    return ".lora_" in name or ".modules_to_save" in name


def load_temporary(spec: Spec) -> int:
    """Bytes of the largest weight that is on the GPU at full width while it is being quantised."""
    if spec.quantization is None or spec.quantization.startswith("gptq"):
        return 0
    sizes = (tensor.numel for tensor in spec.facts.tensors if quantises(tensor, False))
    return rounded(max(sizes, default=0) * DTYPE_BYTES[spec.weights_dtype])


def largest_gradient(held: Inventory) -> int:
    """Bytes of the largest single gradient."""
    return max((rounded(weight.storage) for weight in held.trainables), default=0)


def tied_gradient(spec: Spec, held: Inventory) -> int:
    """Bytes beyond the gradients themselves when a tied embedding gets its gradient, the last of the backward.

    The head's share waits in the engine until the embedding's backward. Under autocast the two are summed in
    place: one more copy. In pure half or full precision the waiting gradient is a transposed view, so the
    engine sums out of place: two more (reference: torch's own count under fake tensors).
    """
    if not spec.facts.tied:
        return 0
    embedding = max((w.storage for w in held.trainables if w.role == "embedding"), default=0)
    return rounded(embedding) * (1 if spec.mixed_precision != "no" and spec.engine != "deepspeed" else 2)
