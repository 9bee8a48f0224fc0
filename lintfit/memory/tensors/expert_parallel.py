"""Experts that are shared out over ranks: each of these has other experts, so that fewer ranks share their states.

Of N ranks that ZeRO shares states over, a group of E holds all experts, and only N / E ranks hold the same ones
(DeepSpeed's expert data-parallel group, ``utils/groups.py``). Measured on 2 and 4 ranks by
``bench/ranks/expert_parallel.py``.
"""

from __future__ import annotations

from lintfit.memory.spec import Spec
from lintfit.memory.tensors.weights import Inventory, Weight


def sharers(spec: Spec, ranks: int, weight: Weight) -> int:
    """Of ``ranks`` those that hold the same tensor."""
    return max(1, ranks // spec.expert_parallel) if weight.role == "expert" else ranks


def parts(spec: Spec, held: Inventory, ranks: int) -> list[tuple[Inventory, int]]:
    """What is trained, by the number of ranks that share it."""
    if spec.expert_parallel == 1:
        return [(held, ranks)]
    experts = tuple(weight for weight in held.trainables if weight.role == "expert")
    others = tuple(weight for weight in held.trainables if weight.role != "expert")
    found = [(Inventory.of(others), ranks), (Inventory.of(experts), max(1, ranks // spec.expert_parallel))]
    return [(part, over) for part, over in found if part.trainable]


def shared_elements(spec: Spec, held: Inventory) -> int:
    """Trained elements as the ranks share them: of one rank's share as many times as there are ranks."""
    if spec.expert_parallel == 1:
        return held.trainable
    experts = sum(weight.total for weight in held.trainables if weight.role == "expert")
    return held.trainable + (spec.expert_parallel - 1) * experts
