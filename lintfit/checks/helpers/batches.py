"""The three batch sizes of a DeepSpeed JSON, which DeepSpeed compares with the number of ranks."""

from __future__ import annotations

from lintfit.checks.helpers.trees import number
from lintfit.documents.model import Node

TOTAL, MICRO, STEPS = "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"


def triple(root: Node) -> tuple[int, int, int] | None:
    """The total, the micro-batch and the accumulation, where the file states all of them as numbers."""
    total, micro, steps = (positive(root.get(name)) for name in (TOTAL, MICRO, STEPS))
    return None if total is None or micro is None or steps is None else (total, micro, steps)


def positive(node: Node | None) -> int | None:
    """The whole number above zero that a node holds."""
    value = number(node)
    return int(value) if value is not None and value > 0 and value == int(value) else None
