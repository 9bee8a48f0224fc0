"""Where ZeRO's rank boundaries fall in the flat parameters: gradients are kept as whole tensors on both sides."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from itertools import accumulate, chain

from lintfit.memory.tensors.weights import Inventory, Weight


def largest_partition(held: Inventory, ranks: int, shard: int) -> int:
    """Elements of the tensors that touch the partition of the rank that has most of them.

    ZeRO-1 and 2 copy the gradients of all parameters in the own partition whole, also those that reach over its
    ends (stage_1_and_2.py ``copy_grads_in_partition``, ``params_in_partition``). ``shard`` is the elements of one
    partition; the tensors stand in the order of the modules.
    """
    if ranks == 1 or not held.trainable:
        return held.trainable
    before, block, count, after = segments = _segments(held.trainables)
    tensors = len(before) + len(block) * count + len(after)
    largest = 0
    for rank in range(ranks) if ranks <= tensors else _with_an_end(*segments, shard):
        # The two tensors at the boundaries: the one that the partition starts in and the one that it ends in.
        start = _edges(*segments, min(rank * shard, held.trainable))[0]
        end = _edges(*segments, min((rank + 1) * shard, held.trainable) - 1)[1]
        largest = max(largest, end - start)
    return largest


def _with_an_end(
    before: Sequence[int], block: Sequence[int], count: int, after: Sequence[int], shard: int
) -> Collection[int]:
    """The ranks whose partition holds a tensor's last element: the others are inside a tensor that one of them has."""
    head = before[-1] if before else 0
    layer = block[-1] if block else 0
    ends = chain(
        before,
        (head + index * layer + end for index in range(count) for end in block),
        (head + count * layer + end for end in after),
    )
    return {(end - 1) // shard for end in ends}


def _segments(weights: Sequence[Weight]) -> tuple[list[int], list[int], int, list[int]]:
    """Running ends of the tensors before the layers, of one layer, how many layers, and after them."""
    before = [w.numel for w in weights if w.where == "embedding" for _ in range(w.copies)]
    after = [w.numel for w in weights if w.where not in ("embedding", "layer") for _ in range(w.copies)]
    layers = [w for w in weights if w.where == "layer" and w.copies]
    count = min((w.copies for w in layers), default=0)
    block = [w.numel for w in layers for _ in range(w.copies // count)]
    return list(accumulate(before)), list(accumulate(block)), count, list(accumulate(after))


def _edges(
    before: Sequence[int], block: Sequence[int], count: int, after: Sequence[int], position: int
) -> tuple[int, int]:
    """Start and end of the tensor that holds an element; the whole flat buffer's end past the last."""
    head = before[-1] if before else 0
    if position < head:
        return _within(before, position, 0)
    layer = block[-1] if block else 0
    if position < head + layer * count:
        offset = head + (position - head) // layer * layer
        return _within(block, position - offset, offset)
    offset = head + layer * count
    if after and position - offset < after[-1]:
        return _within(after, position - offset, offset)
    end = offset + (after[-1] if after else 0)
    return end, end


def _within(ends: Sequence[int], position: int, offset: int) -> tuple[int, int]:
    index = bisect_right(ends, position)
    start = ends[index - 1] if index else 0
    return offset + start, offset + ends[index]
