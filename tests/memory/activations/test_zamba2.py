"""Zamba2's layers, some of which share a block.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.tensors.parameters import inventory

PLAIN: dict[str, Any] = {
    "model_type": "zamba2",
    "vocab_size": 1000,
    "hidden_size": 512,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "n_mamba_heads": 16,
    "mamba_d_state": 32,
    "adapter_rank": 64,
    "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid", "hybrid", "mamba"],
}
SHARED: dict[str, Any] = {
    **PLAIN,
    "num_mem_blocks": 2,
    "use_shared_attention_adapter": True,
    "use_mem_rope": True,
    "mamba_ngroups": 2,
}


def test_every_layer_has_adapters_of_its_own_on_a_shared_block() -> None:
    spec = {"model_config": SHARED, "micro_batch_size": 1, "seq_len": 256, "method": "lora", "lora_targets": ["o_proj"]}
    found = [weight for weight in inventory(spec_from_mapping(spec)).weights if weight.role == "adapter"]
    assert sum(weight.copies for weight in found) == 2 * 3


@pytest.mark.parametrize(("name", "parameters"), [("1.2B", 1.22e9), ("2.7B", 2.7e9), ("7B-Instruct", 7.4e9)])
def test_published_models(name: str, parameters: float) -> None:
    facts = models.lookup(f"Zyphra/Zamba2-{name}")
    assert facts is not None and facts.parameters == pytest.approx(parameters, rel=0.02)
