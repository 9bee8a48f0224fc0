"""Which weights autocast keeps a half-precision copy of."""

from __future__ import annotations

import pytest

from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping

LLAMA = {
    "model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 2,
    "num_attention_heads": 8, "vocab_size": 32000,
}  # fmt: skip
HEAD = 2 * 512 * 32000
EXACT = {"model_config": LLAMA, "weights_dtype": "fp32", "mixed_precision": "bf16", "micro_batch_size": 1}


def _copies(**more: object) -> int:
    """Bytes of temporaries in the loss's forward."""
    moments = estimate(spec_from_mapping({**EXACT, "seq_len": 8, "gradient_checkpointing": True, **more})).moments
    return next(moment for moment in moments if moment.name == "loss, forward").components["temporaries"]


@pytest.mark.parametrize("tied", [True, False])
def test_a_tiled_loss_casts_the_head_tile_by_tile(tied: bool) -> None:
    config = {**LLAMA, "tie_word_embeddings": tied}
    whole, tiled = (_copies(model_config=config, loss=loss) for loss in ("full", "chunked"))
    assert whole - tiled == pytest.approx(HEAD, rel=0.01)
