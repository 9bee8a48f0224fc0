"""Sizes that small configs of several kinds share."""

from __future__ import annotations

from typing import Any

SMALL: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "vocab_size": 1000,
}
GROUPED: dict[str, Any] = {**SMALL, "num_key_value_heads": 2}
PADDED: dict[str, Any] = {**GROUPED, "pad_token_id": 0}
LATENT: dict[str, Any] = {
    **SMALL,
    "kv_lora_rank": 24,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 12,
}
ROUTED: dict[str, Any] = {"n_routed_experts": 4, "moe_intermediate_size": 40, "num_experts_per_tok": 2}
LLAMA4: dict[str, Any] = {**PADDED, "head_dim": 16, "num_local_experts": 4, "intermediate_size_mlp": 96}
GEMMA4: dict[str, Any] = {
    **GROUPED,
    "num_hidden_layers": 7,
    "head_dim": 16,
    "global_head_dim": 24,
    "hidden_size_per_layer_input": 0,
}
GEMMA4_SMALL = {
    **GEMMA4,
    "hidden_size_per_layer_input": 6,
    "vocab_size_per_layer_input": 900,
    "num_kv_shared_layers": 3,
    "use_double_wide_mlp": True,
    "layer_types": ["sliding_attention", "full_attention"] * 3 + ["full_attention"],
}
GEMMA4_ROUTED = {
    **GEMMA4,
    "enable_moe_block": True,
    "num_experts": 4,
    "top_k_experts": 2,
    "moe_intermediate_size": 24,
    "attention_k_eq_v": True,
    "num_global_key_value_heads": 1,
}
EXPERTS = {"num_experts": 6, "moe_intermediate_size": 40, "num_experts_per_tok": 2}
DELTA = {**GROUPED, "head_dim": 16, "num_hidden_layers": 5, "linear_num_key_heads": 2, "linear_num_value_heads": 4}
TOWER: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 28,
    "patch_size": 14,
}
PIXTRAL = {**TOWER, "model_type": "pixtral", "head_dim": 8}
