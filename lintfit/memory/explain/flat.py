"""Terms of what DeepSpeed keeps in flat buffers: masters, optimizer states, and the optimizer's own step on them."""

from __future__ import annotations

from lintfit.memory.explain.tensors import states
from lintfit.memory.explain.term import Factor, Term, term
from lintfit.memory.tensors.optimizers import QUANT_BLOCK, Optimizer, flat_state_bytes, flat_step_temporaries

TRAINED = "trainable parameters"


def each(entry: Optimizer, item: int = 4) -> float:
    """Bytes of the states of one element of a flat partition of ``item`` bytes each."""
    size: float = entry.alike * item + entry.fp32 * 4 + entry.bf16 * 2
    size += entry.eight_bit * (1 + 4 / QUANT_BLOCK) + entry.four_bit * (0.5 + 4 / 128)
    return size + 4 * entry.factored


def masters(trained: int, size: int, over: Factor | None, source: str, item: int = 4, *kept: Factor) -> Term:
    """Masters of ``trained`` parameters, ``item`` bytes each, over some ranks, and what of them is ``kept`` there."""
    what = f"{_dtype(item)} masters"
    return term("master_weights", what, size, (item, "bytes"), (trained, TRAINED), *kept, over=over, source=source)


def _dtype(item: int) -> str:
    return "fp32" if item == 4 else "half-precision"


def optimizer_states(
    name: str,
    entry: Optimizer,
    trained: int,
    shard: int,
    over: Factor | None,
    source: str,
    share: float = 1.0,
    item: int = 4,
) -> Term:
    """States of a flat partition of ``shard`` elements, which is ``trained`` parameters over some ranks."""
    what = f"{name}: {states(entry).replace('the parameter' + chr(39) + 's dtype', _dtype(item))}"
    factors: list[Factor] = [(each(entry, item), "bytes"), (trained, TRAINED)]
    if share != 1:
        factors.append((share, "of it on the GPU"))
    size = int(share * flat_state_bytes(entry, shard, item))
    return term("optimizer_states", what, size, *factors, over=over, source=source)


def step(name: str, entry: Optimizer, numel: int, what: str, source: str = "", item: int = 4) -> list[Term]:
    """What the optimizer's step allocates for one flat tensor of ``item`` bytes an element."""
    size = flat_step_temporaries(entry, numel, item)
    if not size:
        return []
    factors = ((size / numel, "bytes"), (numel, what))
    return [term("temporaries", f"{name}: the step's own copies", size, *factors, source=source)]
