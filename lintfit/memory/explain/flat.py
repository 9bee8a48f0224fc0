"""Terms of what DeepSpeed keeps in flat buffers: masters, optimizer states, and the optimizer's own step on them."""

from __future__ import annotations

from lintfit.memory.explain.tensors import states
from lintfit.memory.explain.term import Factor, Term, term
from lintfit.memory.optimizers import QUANT_BLOCK, Optimizer, flat_state_bytes, flat_step_temporaries

TRAINED = "trainable parameters"


def each(entry: Optimizer) -> float:
    """Bytes of the states of one element of a flat fp32 partition."""
    size: float = entry.alike * 4 + entry.fp32 * 4 + entry.bf16 * 2
    size += entry.eight_bit * (1 + 4 / QUANT_BLOCK) + entry.four_bit * (0.5 + 4 / 128)
    return size + 4 * entry.factored


def masters(trained: int, size: int, over: Factor | None, source: str) -> Term:
    """fp32 masters of ``trained`` parameters over some ranks."""
    return term("master_weights", "fp32 masters", size, (4, "bytes"), (trained, TRAINED), over=over, source=source)


def optimizer_states(
    name: str, entry: Optimizer, trained: int, shard: int, over: Factor | None, source: str, share: float = 1.0
) -> Term:
    """States of a flat partition of ``shard`` elements, which is ``trained`` parameters over some ranks."""
    what = f"{name}: {states(entry).replace('the parameter' + chr(39) + 's dtype', 'fp32')}"
    factors: list[Factor] = [(each(entry), "bytes"), (trained, TRAINED)]
    if share != 1:
        factors.append((share, "of it on the GPU"))
    size = int(share * flat_state_bytes(entry, shard))
    return term("optimizer_states", what, size, *factors, over=over, source=source)


def step(name: str, entry: Optimizer, numel: int, what: str, source: str = "") -> list[Term]:
    """What the optimizer's step allocates for one flat fp32 tensor."""
    size = flat_step_temporaries(entry, numel)
    if not size:
        return []
    factors = ((size / numel, "bytes"), (numel, what))
    return [term("temporaries", f"{name}: the step's own copies", size, *factors, source=source)]
