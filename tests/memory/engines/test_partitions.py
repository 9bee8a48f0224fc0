"""The largest partition, whether all ranks are gone through or only those with the end of a tensor."""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.memory.engines import partitions
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.tensors.parameters import Inventory, inventory

LAYERS = 3
CONFIG = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 200, "num_hidden_layers": LAYERS,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 999,
}  # fmt: skip


def _all_ranks(held: Inventory, ranks: int, shard: int) -> int:
    """What the ranks hold, tensor by tensor."""
    sizes = [
        weight.numel
        for place in ("embedding", "layer", "")
        for _ in range(LAYERS if place == "layer" else 1)
        for weight in held.trainables
        if (weight.where if weight.where in ("embedding", "layer") else "") == place
    ]
    largest = 0
    for rank in range(ranks):
        first, last, at, touched = rank * shard, (rank + 1) * shard, 0, 0
        for size in sizes:
            touched += size if at < last and first < at + size else 0
            at += size
        largest = max(largest, touched)
    return largest


@pytest.mark.parametrize("ranks", [2, 3, 7, 31, 32, 33, 64, 100, 1000, 5003])
def test_largest_partition(ranks: int) -> None:
    held = inventory(spec_from_mapping({"model_config": CONFIG}))
    shard = -(-held.trainable // ranks)
    assert partitions.largest_partition(held, ranks, shard) == _all_ranks(held, ranks, shard)


def test_a_million_ranks_are_not_gone_through(monkeypatch: pytest.MonkeyPatch) -> None:
    held = inventory(spec_from_mapping({"model_config": CONFIG}))
    looked, edges = [], partitions._edges

    def counted(*arguments: Any) -> tuple[int, int]:
        looked.append(arguments)
        return edges(*arguments)

    monkeypatch.setattr(partitions, "_edges", counted)
    assert partitions.largest_partition(held, 2**20, 1) == held.largest_trainable
    assert len(looked) < 200
