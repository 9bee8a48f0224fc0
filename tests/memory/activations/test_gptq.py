"""AutoGPTQ's linear layers in plain torch, with adapters on all of them.

What torch counts of a small Llama is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fake_settings import REENTRANT
from lintfit.memory import estimate
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate

SMALL: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
}
BASE: dict[str, Any] = {
    "model_config": SMALL,
    "micro_batch_size": 1,
    "method": "lora",
    "lora_rank": 8,
    "lora_targets": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    "lora_dropout": 0.0,
    "quantization": "gptq-int4",
    "weights_dtype": "fp16",
    "mixed_precision": "no",
    "optimizer": "adamw_torch",
    **REENTRANT,
}
LAYER = 4 * 1024 * 1024 + 3 * 1024 * 2816


def run(more: dict[str, Any], **versions: str) -> Estimate:
    return estimate(spec_from_mapping({**BASE, **more, "versions": {"transformers": "5.23.0", **versions}}))


def test_autograd_keeps_the_weights_of_all_layers_where_nothing_is_recomputed() -> None:
    more = {"seq_len": 2048, "gradient_checkpointing": False}
    held, kernel = run(more, auto_gptq="0.7.1"), run(more)
    assert held.allocated_bytes - kernel.allocated_bytes == pytest.approx(3 * 2 * LAYER, rel=0.01)


def test_a_kernel_of_autogptqs_that_unpacks_nothing_is_the_low_end() -> None:
    held, kernel = run({"seq_len": 256}, **{"auto-gptq": "0.7.1"}), run({"seq_len": 256})
    assert held.peak.low == kernel.peak.low
    assert any("AutoGPTQ" in note for note in held.assumptions)


def test_optimum_prefers_gptqmodel() -> None:
    both = run({"seq_len": 256}, **{"auto-gptq": "0.7.1", "gptqmodel": "2.0.0"})
    assert both.allocated_bytes == run({"seq_len": 256}).allocated_bytes
