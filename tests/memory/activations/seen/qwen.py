"""Qwen's line."""

from __future__ import annotations

from typing import Any

from tests.memory.activations.seen.common import TEXT, Seen

QWEN3_SEES: dict[str, Any] = {
    "depth": 3,
    "hidden_size": 640,
    "intermediate_size": 1280,
    "num_heads": 8,
    "out_hidden_size": 1024,
    "patch_size": 16,
    "num_position_embeddings": 2304,
    "deepstack_visual_indexes": [0, 1],
}

MODELS: dict[str, Seen] = {
    "qwen2_vl": Seen(
        {
            "model_type": "qwen2_vl",
            "text_config": TEXT,
            "vision_config": {"depth": 3, "embed_dim": 640, "hidden_size": 1024, "num_heads": 8, "mlp_ratio": 4},
        },
        2,
        2048,
        {"image_patches": 4096},
        steps=(
            ("bf16", 1, 1437.93),
            ("autocast", 1, 1853.22),
            ("adapters", 1, 1555.29),
            ("checkpointed", 1, 584.29),
            ("autocast, checkpointed", 1, 823.19),
            ("autocast", 2, 2714.54),
            ("adapters", 2, 2399.29),
            ("adapters, checkpointed", 2, 1133.51),
            ("eager", 1, 7408.78),
            ("adapters, reentrant", 1, 642.38),
            ("fp32", 1, 3711.16),
            ("adapters on queries", 1, 586.99),
            ("reentrant", 1, 596.29),
            ("autocast, checkpointed", 2, 1236.13),
        ),
        evaluations=(("autocast", 1, 497.09),),
        frozen=(
            ("autocast", 1, "visual", 981.55),
            ("checkpointed", 2, "visual", 867.41),
        ),
    ),
    "qwen2_5_vl": Seen(
        {
            "model_type": "qwen2_5_vl",
            "text_config": TEXT,
            "vision_config": {
                "depth": 3,
                "hidden_size": 640,
                "intermediate_size": 1280,
                "num_heads": 8,
                "out_hidden_size": 1024,
                "hidden_act": "silu",
                "fullatt_block_indexes": [1],
            },
        },
        2,
        2048,
        {"image_patches": 4096},
        steps=(
            ("bf16", 1, 1453.29),
            ("autocast", 1, 1819.2),
            ("adapters", 1, 1461.21),
            ("autocast, checkpointed", 1, 754.49),
            ("autocast", 2, 2660.58),
            ("adapters", 2, 2216.04),
            ("eager", 1, 4399.9),
        ),
        evaluations=(("autocast", 1, 483.01),),
        frozen=(("autocast", 1, "visual", 972.16),),
    ),
    "qwen2_5_omni_thinker": Seen(
        {
            "model_type": "qwen2_5_omni_thinker",
            "text_config": TEXT,
            "vision_config": {
                "depth": 3,
                "hidden_size": 640,
                "intermediate_size": 1280,
                "num_heads": 8,
                "out_hidden_size": 1024,
                "fullatt_block_indexes": [1],
            },
            "audio_config": {
                "d_model": 64,
                "encoder_layers": 1,
                "encoder_attention_heads": 4,
                "encoder_ffn_dim": 64,
                "output_dim": 1024,
            },
            "vision_start_token_id": 151652,
            "vision_end_token_id": 151653,
        },
        2,
        2048,
        {"image_patches": 4096, "frozen_modules": ["audio_tower"]},
        steps=(
            ("bf16", 1, 1393.91),
            ("autocast", 1, 1820.07),
            ("adapters", 1, 1463.8),
            ("autocast, checkpointed", 1, 755.36),
            ("autocast", 2, 2661.45),
            ("adapters", 2, 2220.13),
        ),
        evaluations=(("autocast", 1, 483.88),),
    ),
    "qwen3_vl": Seen(
        {"model_type": "qwen3_vl", "text_config": {**TEXT, "head_dim": 128}, "vision_config": QWEN3_SEES},
        2,
        2048,
        {"image_patches": 4096},
        steps=(
            ("autocast", 1, 1904.95),
            ("adapters", 1, 1541.24),
            ("adapters", 2, 2272.9),
            ("eager", 1, 7365.55),
            ("adapters, reentrant", 1, 591.72),
            ("fp32", 1, 3541.2),
            ("adapters on queries", 1, 685.8),
        ),
        evaluations=(("autocast", 1, 624.2),),
        frozen=(("autocast", 1, "visual", 1141.18),),
    ),
    "qwen3_vl_moe": Seen(
        {
            "model_type": "qwen3_vl_moe",
            "text_config": {
                **TEXT,
                "head_dim": 128,
                "moe_intermediate_size": 256,
                "num_experts": 16,
                "num_experts_per_tok": 4,
            },
            "vision_config": QWEN3_SEES,
        },
        2,
        2048,
        {"image_patches": 4096},
        steps=(
            ("autocast", 1, 2405.06),
            ("adapters", 1, 1576.6),
            ("adapters", 2, 2308.26),
            ("eager", 1, 7479.4),
            ("fp32", 1, 3767.23),
        ),
        frozen=(("autocast", 1, "visual", 1641.29),),
    ),
    "qwen3_5": Seen(
        {
            "model_type": "qwen3_5",
            "text_config": {
                **TEXT,
                "head_dim": 128,
                "linear_num_value_heads": 8,
                "linear_num_key_heads": 4,
                "linear_key_head_dim": 128,
                "linear_value_head_dim": 128,
                "layer_types": ["linear_attention", "linear_attention", "full_attention"],
            },
            "vision_config": {
                "depth": 3,
                "hidden_size": 640,
                "intermediate_size": 1280,
                "num_heads": 8,
                "out_hidden_size": 1024,
                "patch_size": 16,
                "num_position_embeddings": 2304,
            },
        },
        1,
        1024,
        {"image_patches": 4096},
        steps=(
            ("bf16", 1, 720.16),
            ("autocast, checkpointed", 1, 568.79),
        ),
    ),
}
