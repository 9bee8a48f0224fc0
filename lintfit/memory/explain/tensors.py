"""Terms of parameters, gradients and optimizer states that are separate tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from lintfit.memory.explain.term import Factor, Term, term
from lintfit.memory.spec import DTYPE_BYTES
from lintfit.memory.tensors import adafactor
from lintfit.memory.tensors.optimizers import (
    MIN_8BIT,
    MIN_PAGED,
    Optimizer,
    resident_bytes,
    step_temporaries,
    tensor_state,
)
from lintfit.memory.tensors.parameters import Weight

_Key = TypeVar("_Key")


def grouped(weights: Iterable[Weight], key: Callable[[Weight], _Key]) -> dict[_Key, list[Weight]]:
    """The weights by a key of each, in the order of first use."""
    groups: dict[_Key, list[Weight]] = {}
    for weight in weights:
        groups.setdefault(key(weight), []).append(weight)
    return groups


def _kind(weight: Weight) -> str:
    if weight.role == "adapter":
        return f"adapters in {weight.dtype}"
    state = "trained" if weight.trainable else "frozen"
    return f"{state} weights, {'quantised' if weight.quantised else 'in ' + weight.dtype}"


def parameters(
    weights: Iterable[Weight], *, component: str = "parameters", over: Factor | None = None, source: str = ""
) -> list[Term]:
    """Every kind of weight: bytes an element times elements (divided by the ranks that share them)."""
    found = []
    for what, group in grouped(weights, _kind).items():
        numel = sum(weight.total for weight in group)
        stored = sum(weight.storage * weight.copies for weight in group)
        each = stored / numel if numel else 0
        if "quantised" in what:
            what += " (with their block constants)"
        size = -(-stored // over[0]) if over else stored
        found.append(term(component, what, size, (each, "bytes"), (numel, "parameters"), over=over, source=source))
    return found


def gradients(
    weights: Iterable[Weight],
    *,
    component: str = "gradients",
    what: str = "one gradient for each trained parameter, in its dtype",
    over: Factor | None = None,
    source: str = "",
) -> list[Term]:
    """Gradients in the dtype of their parameters."""
    found = []
    for dtype, group in grouped((w for w in weights if w.trainable), lambda weight: weight.dtype).items():
        item = DTYPE_BYTES[dtype]
        numel = sum(weight.total for weight in group)
        size = -(-item * numel // over[0]) if over else item * numel
        factors = ((item, f"bytes ({dtype})"), (numel, "trained parameters"))
        found.append(term(component, what, size, *factors, over=over, source=source))
    return found


def _each(entry: Optimizer, weight: Weight) -> float:
    """Bytes of the states of one element of a weight that is large enough for every format."""
    item = DTYPE_BYTES[weight.dtype]
    size: float = entry.alike * item + entry.fp32 * 4 + entry.bf16 * 2
    if entry.eight_bit:
        wide = weight.numel < MIN_8BIT or weight.role == "embedding"
        size += entry.eight_bit * (4 if wide else 1 + 4 / 256)
    if entry.four_bit:
        size += entry.four_bit * (4 if weight.numel < MIN_8BIT else 0.5 + 4 / 128)
    if entry.step == "muon" and (weight.role != "linear" or len(weight.shape) != 2):
        size += item
    return size


def optimizer_states(
    name: str, entry: Optimizer, weights: Sequence[Weight], *, source: str = "", whole: str = "trained parameters"
) -> list[Term]:
    """The states on the GPU for separate tensors, by bytes an element; counters and blocks as a term of their own."""
    trained = [weight for weight in weights if weight.trainable]
    total = resident_bytes(entry, weights)
    if entry.paged:
        trained = [weight for weight in trained if weight.numel < MIN_PAGED]
    found: list[Term] = []
    if entry.factored:
        size = sum(tensor_state(entry, weight) * weight.copies for weight in trained)
        what = f"{name}: fp32 averages of every row and column instead of every element"
        found.append(term("optimizer_states", what, size, (4, "bytes"), (size / 4, "averages"), source=source))
    else:
        for each, group in _by_size(entry, trained).items():
            numel = sum(weight.total for weight in group)
            factors = ((each, "bytes"), (numel, whole))
            found.append(term("optimizer_states", f"{name}: {states(entry)}", each * numel, *factors, source=source))
    rest = total - sum(item.size for item in found)
    if rest:
        what = "block constants and tensors too small to page" if entry.paged else "step counters, blocks of 512 bytes"
        found.append(term("optimizer_states", what, rest))
    return found


def _by_size(entry: Optimizer, weights: Iterable[Weight]) -> dict[float, list[Weight]]:
    return {each: group for each, group in grouped(weights, lambda weight: _each(entry, weight)).items() if each}


def states(entry: Optimizer) -> str:
    """What an optimizer keeps for every element, in words."""
    parts = [
        f"{count} {'state' if count == 1 else 'states'} {how}"
        for count, how in (
            (entry.alike, "in the parameter's dtype"),
            (entry.fp32, "in fp32"),
            (entry.bf16, "in bf16"),
            (entry.eight_bit, "in 8 bits with an fp32 constant for 256"),
            (entry.four_bit, "in 4 bits with an fp32 constant for 128"),
        )
        if count
    ]
    if entry.factored:
        parts.append("an fp32 average of every element, as a flat partition has neither rows nor columns")
    return " and ".join(parts) or "no states"


def step(name: str, entry: Optimizer, weights: Sequence[Weight]) -> list[Term]:
    """What the optimizer's step allocates on separate tensors."""
    size = step_temporaries(entry, weights)
    trained = [weight for weight in weights if weight.trainable]
    if not size:
        return []
    match entry.step:
        case "foreach":
            groups = [[w for w in trained if w.decays], [w for w in trained if not w.decays]]
            group = max(groups, key=lambda part: sum(weight.bytes for weight in part))
            numel = sum(weight.total for weight in group)
            factors = ((size / numel, "bytes"), (numel, "parameters of the larger group"))
            what = f"{name}: a copy of the second moments (_foreach_sqrt)"
            source = "torch/optim/adamw.py _multi_tensor_adamw; measured on an A100"
            if entry.copies > 1:
                what += ", and the scaled gradients beside it"
                source = "torch/optim/adagrad.py _multi_tensor_adagrad"
        case "single":
            largest = max([weight.numel for weight in trained])
            factors = ((size / largest, "bytes"), (largest, "elements of the largest tensor"))
            what = f"{name}: the root of its second moments, and what the update is divided by"
            source = "torch/optim/adamw.py _single_tensor_adamw"
        case "adafactor":
            return _adafactor(name, weights)
        case _:
            largest = size // 6
            factors = ((6, "bytes"), (largest, "elements of the largest matrix"))
            what, source = f"{name}: three half-precision matrices of Newton-Schulz", "torch/optim/_muon.py"
    return [term("temporaries", what, size, *factors, source=source)]


def _adafactor(name: str, weights: Sequence[Weight]) -> list[Term]:
    turn, source = adafactor.worst(weights), "transformers optimization.py Adafactor"
    if turn is None:
        return []
    parts = [("update and fp32 copies of one tensor", turn.weight, turn.own)]
    if turn.before is not None:
        parts.append(("the update of the tensor before, which a variable still has", turn.before, turn.left))
    return [
        term(
            "temporaries", f"{name}: {what}", size, (size / weight.numel, "bytes"), (weight.numel, "elements"),
            source=source,
        )
        for what, weight, size in parts
    ]  # fmt: skip
