"""Models whose layers are not all attention."""

from __future__ import annotations

from typing import Any

from tests.catalog.small.sizes import DELTA, EXPERTS, GROUPED, LATENT, PADDED, SMALL

MAMBA: dict[str, Any] = {"hidden_size": 64, "num_hidden_layers": 3, "vocab_size": 128, "state_size": 8}
BAMBA: dict[str, Any] = {"mamba_n_heads": 8, "mamba_d_state": 16, "mamba_n_groups": 2, "pad_token_id": 0}
MAMBA2 = {
    **GROUPED,
    "shared_intermediate_size": 40,
    "intermediate_size": 24,
    "num_local_experts": 4,
    "mamba_n_heads": 8,
    "mamba_d_state": 16,
    "mamba_n_groups": 2,
}
NEMOTRON_H = {
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 1000,
    "mamba_num_heads": 8,
    "mamba_head_dim": 8,
    "ssm_state_size": 16,
    "n_groups": 2,
}
KIMI: dict[str, Any] = {
    **LATENT,
    "num_hidden_layers": 5,
    "num_experts": 4,
    "moe_intermediate_size": 40,
    "num_experts_per_token": 2,
    "linear_head_dim": 16,
    "linear_num_heads": 2,
    "pad_token_id": 0,
}
KIMI_PARTS = {"full_attn_layers": [2, 5], "kda_layers": [1, 3, 4], "head_dim": 8, "num_heads": 3}
DELTA_LAYERS = ["full_attention", "linear_attention", "linear_attention", "full_attention", "linear_attention"]
JAMBA: dict[str, Any] = {
    "attn_layer_period": 3,
    "attn_layer_offset": 1,
    "num_experts": 4,
    "mamba_dt_rank": 6,
    "mamba_d_state": 8,
    "pad_token_id": 0,
}
ZAMBA2: dict[str, Any] = {
    **SMALL,
    "num_hidden_layers": 7,
    "n_mamba_heads": 8,
    "mamba_d_state": 16,
    "mamba_ngroups": 2,
    "adapter_rank": 6,
    "layers_block_type": ["mamba", "hybrid", "hybrid", "mamba", "hybrid", "hybrid", "hybrid"],
}

ZAMBA: dict[str, Any] = {
    **SMALL,
    "num_hidden_layers": 9,
    "num_key_value_heads": 8,
    "attn_layer_period": 3,
    "attn_layer_offset": 1,
    "mamba_dt_rank": 6,
}

CASES: list[tuple[str, dict[str, Any]]] = [
    ("zamba", ZAMBA),
    (
        "zamba",
        {**ZAMBA, "n_mamba_heads": 4, "num_hidden_layers": 3, "layers_block_type": ["hybrid", "mamba", "hybrid"]},
    ),
    (
        "zamba",
        {**ZAMBA, "attention_head_dim": 24, "mamba_proj_bias": True, "mamba_conv_bias": False, "mamba_dt_rank": "auto"},
    ),
    ("zamba2", ZAMBA2),
    ("zamba2", {**ZAMBA2, "num_mem_blocks": 2, "use_shared_attention_adapter": True, "use_mem_rope": True}),
    ("zamba2", {**ZAMBA2, "num_mem_blocks": 3, "add_bias_linear": True}),
    ("bamba", {**GROUPED, **BAMBA, "attn_layer_indices": [1]}),
    ("bamba", {**GROUPED, **BAMBA, "attention_bias": True, "mlp_bias": True, "mamba_proj_bias": True}),
    ("jamba", {**GROUPED, **JAMBA, "num_hidden_layers": 6}),
    ("jamba", {**GROUPED, **JAMBA, "num_experts": 1, "mamba_proj_bias": True, "mamba_conv_bias": False}),
    ("mamba", {**MAMBA, "time_step_rank": 6}),
    ("mamba", {**MAMBA, "intermediate_size": 96, "use_bias": True, "use_conv_bias": False}),
    ("mamba2", {**MAMBA, "num_heads": 8, "head_dim": 16, "n_groups": 2}),
    ("mamba2", {**MAMBA, "num_heads": 4, "head_dim": 48, "expand": 3, "n_groups": 1, "use_bias": True}),
    ("mamba2", {**MAMBA, "num_heads": 8, "head_dim": 16, "use_conv_bias": False, "tie_word_embeddings": True}),
    ("falcon_mamba", {**MAMBA, "tie_word_embeddings": False}),
    ("lfm2_moe", {**PADDED, **EXPERTS, "layer_types": ["conv", "full_attention", "conv"]}),
    ("lfm2_moe", {**PADDED, **EXPERTS, "layer_types": ["full_attention"] * 3, "num_dense_layers": 0}),
    ("minimax", {**GROUPED, "head_dim": 16, "num_local_experts": 4}),
    (
        "minimax",
        {**GROUPED, "num_local_experts": 4, "layer_types": ["linear_attention", "full_attention", "linear_attention"]},
    ),
    ("recurrent_gemma", {**GROUPED, "num_hidden_layers": 4}),
    (
        "recurrent_gemma",
        {**SMALL, "lru_width": 96, "block_types": ["attention", "recurrent"], "tie_word_embeddings": False},
    ),
    ("recurrent_gemma", {**GROUPED, "attention_bias": True, "conv1d_width": 3}),
    ("qwen3_next", {**GROUPED, **EXPERTS, "head_dim": 16, "num_hidden_layers": 5, "linear_num_value_heads": 4}),
    (
        "qwen3_next",
        {**GROUPED, **EXPERTS, "layer_types": ["full_attention", "linear_attention", "full_attention"]},
    ),
    ("granitemoehybrid", {**MAMBA2, "layer_types": ["mamba", "attention", "mamba"]}),
    ("granitemoehybrid", {**MAMBA2, "num_local_experts": 0, "mamba_proj_bias": True, "mamba_conv_bias": False}),
    (
        "granitemoehybrid",
        {**MAMBA2, "layers_block_type": ["attention"] * 3, "attention_bias": True, "position_embedding_type": "rope"},
    ),
    ("falcon_h1", {**GROUPED, "mamba_d_ssm": 48, "mamba_n_heads": 4, "mamba_d_state": 16}),
    ("falcon_h1", {**GROUPED, "mamba_d_ssm": None, "mamba_n_heads": 4, "mamba_rms_norm": True, "mlp_bias": True}),
    (
        "falcon_h1",
        {
            **GROUPED,
            "head_dim": 16,
            "mamba_d_ssm": 64,
            "mamba_n_heads": 4,
            "mamba_n_groups": 2,
            "projectors_bias": True,
            "attention_bias": True,
            "mamba_proj_bias": True,
            "mamba_conv_bias": False,
            "tie_word_embeddings": True,
        },
    ),
    ("nemotron_h", {**NEMOTRON_H, "hybrid_override_pattern": "M-M*-"}),
    ("nemotron_h", {**NEMOTRON_H, "layers_block_type": ["mamba", "mlp", "attention"], "tie_word_embeddings": True}),
    ("nemotron_h", {**NEMOTRON_H, "layers_block_type": ["mlp", "mamba"], "use_bias": True, "mlp_bias": True}),
    (
        "nemotron_h",
        {
            **NEMOTRON_H,
            "hybrid_override_pattern": "ME*E-",
            "n_routed_experts": 4,
            "moe_intermediate_size": 40,
            "moe_shared_expert_intermediate_size": 80,
        },
    ),
    (
        "nemotron_h",
        {
            **NEMOTRON_H,
            "layers_block_type": ["moe", "attention", "moe"],
            "n_routed_experts": 4,
            "moe_intermediate_size": 40,
            "moe_shared_expert_intermediate_size": 80,
            "moe_latent_size": 24,
            "mlp_bias": True,
        },
    ),
    ("lfm2", {**GROUPED, "full_attn_idxs": [1]}),
    ("lfm2", {**GROUPED, "layer_types": ["conv", "conv", "full_attention"], "block_auto_adjust_ff_dim": False}),
    ("lfm2", {**GROUPED, "layer_types": ["conv"] * 3, "conv_bias": True, "tie_word_embeddings": False}),
    ("lfm2", {**GROUPED, "full_attn_idxs": [0, 1], "block_ff_dim": 200, "block_multiple_of": 16}),
    ("olmo_hybrid", {**SMALL, "pad_token_id": 0, "num_hidden_layers": 4}),
    (
        "olmo_hybrid",
        {
            **PADDED,
            "layer_types": ["linear_attention", "full_attention", "linear_attention"],
            "linear_num_key_heads": 4,
            "linear_key_head_dim": 6,
            "attention_bias": True,
        },
    ),
    ("qwen3_5_text", {**DELTA, "attention_bias": True, "tie_word_embeddings": True}),
    ("qwen3_5_moe_text", {**DELTA, **EXPERTS, "shared_expert_intermediate_size": 24, "layer_types": DELTA_LAYERS}),
    ("lfm3", {**PADDED, "head_dim": 16, "num_hidden_layers": 6}),
    ("lfm3", {**PADDED, "head_dim": 16, "conv_bias": True, "attention_bias": True, "use_sandwich_norm": False}),
    ("lfm3", {**PADDED, "layer_types": ["conv"] * 3, "use_attention_gate": False, "tie_word_embeddings": False}),
    ("kimi_linear", KIMI),
    ("kimi_linear", {**KIMI, "linear_attn_config": KIMI_PARTS, "num_shared_experts": 2}),
    ("kimi_linear", {**KIMI, "layer_types": ["linear_attention"] * 5, "mlp_layer_types": ["dense"] * 5}),
    ("kimi_linear", {**KIMI, "q_lora_rank": 20, "attention_bias": True, "mlp_layer_types": ["sparse"] * 5}),
]
