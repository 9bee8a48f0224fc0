"""Keys of specs that many cases under fake tensors share."""

from __future__ import annotations

GC = {"gradient_checkpointing": True, "use_reentrant": False}
REENTRANT = {"gradient_checkpointing": True, "use_reentrant": True}
LORA = {
    "method": "lora",
    "lora_rank": 16,
    "lora_targets": ["q_proj", "k_proj", "v_proj", "o_proj"],
    "lora_dropout": 0.05,
}
EVERY = {**LORA, "lora_targets": "all-linear", "lora_dropout": 0.0}
