"""Models whose image encoder takes patches of images of any size, Qwen 2 VL's kind."""

from __future__ import annotations

from typing import Any

from tests.catalog.small.sizes import DELTA, EXPERTS, GROUPED, PADDED, PIXTRAL, ROUTED, TOWER

QWEN3_MOE = {**GROUPED, "head_dim": 16, "moe_intermediate_size": 40, "num_experts": 4, "num_experts_per_tok": 2}
QWEN2_VISION = {"depth": 2, "embed_dim": 32, "hidden_size": 64, "num_heads": 4, "mlp_ratio": 3}
QWEN2_5_VISION = {"depth": 2, "hidden_size": 32, "intermediate_size": 50, "num_heads": 4, "out_hidden_size": 64}
QWEN3_VISION = {**QWEN2_5_VISION, "depth": 4, "deepstack_visual_indexes": [1, 2], "num_position_embeddings": 64}
GLM4V_VISION: dict[str, Any] = {
    "depth": 2,
    "hidden_size": 32,
    "num_heads": 4,
    "out_hidden_size": 64,
    "intermediate_size": 50,
    "image_size": 28,
}
OMNI_AUDIO: dict[str, Any] = {
    "d_model": 32,
    "encoder_layers": 2,
    "encoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "num_mel_bins": 20,
    "output_dim": 64,
}
KIMI_TEXT: dict[str, Any] = {
    **PADDED,
    "kv_lora_rank": 16,
    "q_lora_rank": 24,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 12,
    "v_head_dim": 12,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 40,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
}
MOON: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "pos_emb_height": 6,
    "pos_emb_width": 6,
}
DELTA_VISION = {**QWEN2_5_VISION, "num_position_embeddings": 64}

CASES: list[tuple[str, dict[str, Any]]] = [
    ("qwen2_vl", {"text_config": GROUPED, "vision_config": QWEN2_VISION}),
    ("qwen2_vl", {**GROUPED, "vision_config": QWEN2_VISION, "tie_word_embeddings": True}),
    ("qwen2_5_vl", {"text_config": GROUPED, "vision_config": QWEN2_5_VISION}),
    ("qwen2_5_vl", {**GROUPED, "vision_config": QWEN2_5_VISION, "tie_word_embeddings": True}),
    ("qwen2_5_omni_thinker", {"text_config": GROUPED, "vision_config": QWEN2_5_VISION, "audio_config": OMNI_AUDIO}),
    (
        "qwen2_5_omni_thinker",
        {
            "text_config": {**GROUPED, "tie_word_embeddings": True},
            "vision_config": QWEN2_5_VISION,
            "audio_config": OMNI_AUDIO,
            "tie_word_embeddings": True,
        },
    ),
    (
        "qwen3_omni_moe_thinker",
        {
            "text_config": QWEN3_MOE,
            "vision_config": QWEN3_VISION,
            "audio_config": {**OMNI_AUDIO, "downsample_hidden_size": 12},
        },
    ),
    ("qwen3_vl", {"text_config": GROUPED, "vision_config": QWEN3_VISION, "tie_word_embeddings": True}),
    ("qwen3_vl_moe", {"text_config": QWEN3_MOE, "vision_config": QWEN3_VISION}),
    ("lighton_ocr", {"text_config": {**GROUPED, "head_dim": 24, "model_type": "qwen3"}, "vision_config": PIXTRAL}),
    (
        "lighton_ocr",
        {
            "text_config": {**GROUPED, "head_dim": 16, "model_type": "qwen3"},
            "vision_config": PIXTRAL,
            "spatial_merge_size": 1,
            "tie_word_embeddings": False,
        },
    ),
    ("paddleocr_vl", {"text_config": {**GROUPED, "head_dim": 24}, "vision_config": TOWER}),
    ("paddleocr_vl", {**GROUPED, "head_dim": 24, "vision_config": TOWER, "tie_word_embeddings": False}),
    (
        "paddleocr_vl",
        {**GROUPED, "head_dim": 16, "use_bias": True, "vision_config": {**TOWER, "spatial_merge_size": 1}},
    ),
    ("glm4v", {"text_config": PADDED, "vision_config": GLM4V_VISION}),
    (
        "glm4v",
        {
            "text_config": {**PADDED, "tie_word_embeddings": True},
            "vision_config": {**GLM4V_VISION, "attention_bias": True, "spatial_merge_size": 1},
        },
    ),
    ("glm46v", {"text_config": {**PADDED, "model_type": "glm4v_text"}, "vision_config": GLM4V_VISION}),
    (
        "glm46v",
        {
            "text_config": {**PADDED, **ROUTED, "head_dim": 16, "model_type": "glm4v_moe_text"},
            "vision_config": {**GLM4V_VISION, "model_type": "glm4v_moe_vision"},
            "tie_word_embeddings": True,
        },
    ),
    ("glm4v_moe", {"text_config": {**PADDED, **ROUTED, "head_dim": 16}, "vision_config": GLM4V_VISION}),
    (
        "glm4v_moe",
        {
            "text_config": {
                **PADDED,
                **ROUTED,
                "use_qk_norm": True,
                "attention_bias": False,
                "first_k_dense_replace": 2,
            },
            "vision_config": GLM4V_VISION,
            "tie_word_embeddings": True,
        },
    ),
    (
        "exaone4_5",
        {
            "text_config": {**PADDED, "model_type": "exaone4", "sliding_window": 64},
            "vision_config": {**QWEN2_5_VISION, "num_key_value_heads": 2},
        },
    ),
    (
        "exaone4_5",
        {
            "text_config": {**PADDED, "model_type": "exaone4", "head_dim": 24},
            "vision_config": {**QWEN2_5_VISION, "num_heads": 8},
            "tie_word_embeddings": True,
        },
    ),
    ("glm_ocr", {"text_config": {**PADDED, "head_dim": 24}, "vision_config": GLM4V_VISION}),
    (
        "glm_ocr",
        {
            "text_config": {**PADDED, "tie_word_embeddings": True},
            "vision_config": {**GLM4V_VISION, "attention_bias": False},
        },
    ),
    (
        "kimi_k25",
        {
            "text_config": {**KIMI_TEXT, "model_type": "deepseek_v3"},
            "vision_config": MOON,
            "projection_hidden_size": 32,
        },
    ),
    (
        "kimi_k25",
        {
            "text_config": {**KIMI_TEXT, "q_lora_rank": None, "model_type": "deepseek_v3"},
            "vision_config": {**MOON, "merge_kernel_size": [1, 2], "pos_emb_width": 4},
            "projection_hidden_size": 32,
            "tie_word_embeddings": False,
        },
    ),
    ("qwen3_5", {"text_config": DELTA, "vision_config": DELTA_VISION, "tie_word_embeddings": True}),
    ("qwen3_5", {"text_config": {**DELTA, "full_attention_interval": 3}, "vision_config": DELTA_VISION}),
    ("qwen3_5_moe", {"text_config": {**DELTA, **EXPERTS}, "vision_config": DELTA_VISION}),
]
