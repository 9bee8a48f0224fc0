"""DeBERTa v2 and v3 with the masked-language-model head.

What torch counts of small ones is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

import pytest

from lintfit.catalog import models
from lintfit.memory import estimate
from lintfit.memory.activations.families import known
from lintfit.memory.reading.parse import spec_from_mapping

V3: dict[str, Any] = {
    "model_type": "deberta-v2", "vocab_size": 1000, "hidden_size": 512, "num_hidden_layers": 3,
    "num_attention_heads": 8, "intermediate_size": 2048, "max_position_embeddings": 512, "relative_attention": True,
    "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": "p2c|c2p",
    "position_biased_input": False, "type_vocab_size": 0,
}  # fmt: skip


@pytest.mark.parametrize("odd", [{"embedding_size": 128}, {"legacy": False}])
def test_what_no_published_model_has_is_said_to_be_unknown(odd: dict[str, Any]) -> None:
    assert known(models.from_config(V3, "small"))
    assert not known(models.from_config({**V3, **odd}, "small"))
    spec = {"model_config": {**V3, **odd}, "gpu_memory_gib": 80, "micro_batch_size": 4, "seq_len": 512}
    assert estimate(spec_from_mapping(spec)).allocated_bytes
