"""Terms of the states of one process and of DDP."""

from __future__ import annotations

from lintfit.memory.engines.ddp import broadcast_bytes, reduces, views_buckets
from lintfit.memory.engines.gradients import largest_gradient, tied_gradient, unreduced_gradient
from lintfit.memory.engines.loading import load_temporary
from lintfit.memory.engines.saving import reordered
from lintfit.memory.engines.zeroing import added_to, in_backward, stay_behind_step, stay_in_forward
from lintfit.memory.explain import tensors
from lintfit.memory.explain.term import Term, term
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.optimizers import optimizer
from lintfit.memory.tensors.parameters import Inventory, Weight, inventory, loaded_dtype

REDUCER = "torch/csrc/distributed/c10d/reducer.cpp"


def terms(spec: Spec, state: str) -> list[Term]:
    """What one rank holds at a moment of :class:`~lintfit.memory.engines.states.States`, without sharding."""
    held = inventory(spec)
    if state == "load":
        return load(spec, held)
    buckets = _buckets(spec, held)
    if state == "initialize":
        size = broadcast_bytes(held) if buckets else 0
        what = "weights broadcast from rank 0 in one piece of at most 250 MiB"
        return [*tensors.parameters(held.weights), *buckets, term("temporaries", what, size, source=REDUCER)]
    entry, _ = optimizer(spec.optimizer, spec.versions)
    steady = [
        *tensors.parameters(held.weights),
        *tensors.optimizer_states(spec.optimizer, entry, held.weights, source=_source(spec.optimizer)),
        *buckets,
    ]
    gradients = _gradients(spec, held)
    if state in ("evaluate", "save"):
        what = "int8 weights laid out by rows for the state dict, and copies in their place"
        size = reordered(spec, held) if state == "save" else 0
        copies = [term("temporaries", what, size, source="bitsandbytes nn/modules.py")] if size else []
        return [*steady, *(gradients if stay_behind_step(spec) else []), *copies]
    if state == "forward":
        return [*steady, *(gradients if stay_in_forward(spec) else [])]
    if state in ("backward_start", "first_gradient"):
        return [*steady, *(gradients if added_to(spec) else [])]
    if state == "backward_end":
        late = [*tied(spec, held), *(new_gradient(held) if added_to(spec) or views_buckets(spec) else [])]
        return [*steady, *gradients, *late]
    stepping = [] if in_backward(spec) else tensors.step(spec.optimizer, entry, held.weights)
    return [*steady, *gradients, *stepping]


def _source(name: str) -> str:
    eight = "8bit" in name or "paged" in name
    return "bitsandbytes optim/optimizer.py" if eight else "torch/optim" if "torch" in name else ""


def _buckets(spec: Spec, held: Inventory) -> list[Term]:
    if not reduces(spec):
        return []
    what = "DDP's buckets; gradients are a second copy without gradient_as_bucket_view"
    if views_buckets(spec):
        what = "DDP's buckets, of which the gradients are views (gradient_as_bucket_view)"
    return tensors.gradients(held.weights, component="communication_buffers", what=what, source=REDUCER)


def _gradients(spec: Spec, held: Inventory) -> list[Term]:
    if in_backward(spec):
        what = "the largest gradient: the others are used as soon as they are made"
        return [term("gradients", what, largest_gradient(held))]
    what = "the split embedding's gradient of other ranks' rows, which are not reduced yet"
    other = term("gradients", what, unreduced_gradient(spec), source="transformers distributed/tensor_parallel.py")
    return [other] if views_buckets(spec) else [*tensors.gradients(held.weights), other]


def new_gradient(held: Inventory) -> list[Term]:
    """A gradient that is about to be added to that of earlier micro-batches."""
    what = "the largest new gradient beside the accumulated ones"
    return [term("temporaries", what, largest_gradient(held), source="torch AccumulateGrad")]


def tied(spec: Spec, held: Inventory) -> list[Term]:
    """What a tied embedding's gradient needs beside itself."""
    size = tied_gradient(spec, held)
    embedding = max((w.storage for w in held.trainables if w.words), default=0)
    if not size or not embedding:
        return []
    copies = round(size / embedding)
    what = "the tied head's gradient waits for the embedding's" + (", then both are summed" if copies > 1 else "")
    factors = ((copies, "copies"), (embedding, "bytes of the embedding"))
    return [term("temporaries", what, size, *factors, source="torch's count under fake tensors")]


def load(spec: Spec, held: Inventory, *, whole: bool = True) -> list[Term]:
    """The model as it gets onto the GPU: a full copy as loaded, or (not ``whole``) as it trains."""
    weights: tuple[Weight, ...] = held.weights
    if whole:
        if spec.method == "lora":
            weights = tuple(w for w in weights if ".lora_" not in w.name and ".modules_to_save" not in w.name)
        weights = tuple(weight.cast(loaded_dtype(spec)) for weight in weights)
    what = f"the largest weight in {spec.weights_dtype} while it is quantised"
    return [
        *tensors.parameters(weights, source="from_pretrained"),
        term("temporaries", what, load_temporary(spec), source="bitsandbytes"),
    ]
