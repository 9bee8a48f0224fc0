"""Buffers of all positions, which are there from the load to the save: GPT-Neo's layers have a causal mask each.

What torch counts of a small one in every phase is in ``tests/recordings/``.
"""

from __future__ import annotations

from typing import Any

from lintfit.memory import estimate
from lintfit.memory.explain import at
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.result import Estimate

GPT_NEO: dict[str, Any] = {
    "model_type": "gpt_neo",
    "hidden_size": 512,
    "num_layers": 4,
    "attention_types": [[["global", "local"], 2]],
    "num_heads": 8,
    "vocab_size": 1000,
    "max_position_embeddings": 2048,
    "intermediate_size": 2048,
    "window_size": 256,
}
MASKS = 4 * 2048**2


def run(optimizer: str, **more: Any) -> Estimate:
    spec = {
        "model_config": GPT_NEO,
        "micro_batch_size": 1,
        "seq_len": 64,
        "weights_dtype": "bf16",
        "mixed_precision": "no",
        "optimizer": optimizer,
        "attention": "eager",
        "gradient_checkpointing": False,
        "versions": {"transformers": "5.23.0"},
        **more,
    }
    return estimate(spec_from_mapping(spec))


def test_every_moment_has_them_and_says_so() -> None:
    found = run("adamw_torch")
    spec = spec_from_mapping({"model_config": GPT_NEO, "seq_len": 64, "weights_dtype": "bf16", "attention": "eager"})
    for moment in found.moments:
        terms = [term for part in at(spec, found, moment) if part.component == "parameters" for term in part.terms]
        assert [term.size for term in terms if term.what == "buffers of all positions"] == [MASKS], moment.name
