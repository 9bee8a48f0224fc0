"""K-EXAONE: windows, norms on the heads, and experts.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

from lintfit.catalog import models
from lintfit.memory.activations.kinds import kinds

SMALL: dict[str, Any] = {
    "model_type": "exaone_moe", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 4,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 1000, "num_experts": 16,
    "num_experts_per_tok": 4, "moe_intermediate_size": 256, "sliding_window": 128, "pad_token_id": 0,
}  # fmt: skip


def test_layers_route_as_the_config_lists_them() -> None:
    facts = models.from_config({**SMALL, "mlp_layer_types": ["sparse", "dense", "sparse", "sparse"]})
    assert [kind.routed for kind in kinds(facts)] == [True, False, True, True]
    assert [kind.window for kind in kinds(facts)] == [128, 128, 128, None]
