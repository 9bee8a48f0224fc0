"""The vision-language cases of ``bench.fake_tensors``: models by their published sizes, and runs with images."""

from __future__ import annotations

from typing import Any

from bench.fake_settings import EVERY, GC, LORA, REENTRANT

SIGLIP = {
    "model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
    "num_attention_heads": 16, "patch_size": 14, "vision_use_head": False,
}  # fmt: skip
IDEFICS = {
    "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16,
    "patch_size": 14,
}  # fmt: skip
PIXTRAL = {
    "model_type": "pixtral", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
    "num_attention_heads": 16, "head_dim": 64,
}  # fmt: skip
COMMAND = {
    "model_type": "cohere2", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 256000, "sliding_window": 4096,
}  # fmt: skip
GLM_ROPE = {
    "rope_type": "default", "rope_theta": 10000, "partial_rotary_factor": 0.5, "mrope_section": [8, 12, 12],
}  # fmt: skip
GLM_VISION = {
    "depth": 24, "hidden_size": 1536, "num_heads": 12, "intermediate_size": 13696, "out_hidden_size": 4096,
    "image_size": 336, "patch_size": 14,
}  # fmt: skip
GLM_TEXT = {
    "model_type": "glm4v_text", "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40,
    "num_attention_heads": 32, "num_key_value_heads": 2, "vocab_size": 151552, "max_position_embeddings": 65536,
    "pad_token_id": 151329, "rope_parameters": GLM_ROPE,
}  # fmt: skip
MODELS: dict[str, dict[str, Any]] = {
    "aya vision 8 B, tied": {
        "model_type": "aya_vision", "alignment_intermediate_size": 28672, "tie_word_embeddings": True,
        "text_config": COMMAND, "vision_config": {**SIGLIP, "image_size": 364},
    },
    "command a vision of 8 layers, tied": {
        "model_type": "cohere2_vision", "alignment_intermediate_size": 36864, "tie_word_embeddings": True,
        "text_config": {
            **COMMAND, "hidden_size": 12288, "intermediate_size": 36864, "num_hidden_layers": 8,
            "num_attention_heads": 96,
        },
        "vision_config": {**SIGLIP, "image_size": 512, "patch_size": 16},
    },
    "lfm2 vl 1.6 B, tied": {
        "model_type": "lfm2_vl", "tie_word_embeddings": True,
        "text_config": {
            "model_type": "lfm2", "hidden_size": 2048, "intermediate_size": 12288, "num_hidden_layers": 16,
            "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 65536,
            "full_attn_idxs": [2, 5, 8, 10, 12, 14],
        },
        "vision_config": {
            "model_type": "siglip2_vision_model", "hidden_size": 1152, "intermediate_size": 4304,
            "num_hidden_layers": 26, "num_attention_heads": 16, "patch_size": 16, "num_patches": 256,
            "vision_use_head": False,
        },
    },
    "glm 4.1v 9 B": {
        "model_type": "glm4v", "tie_word_embeddings": False,
        "text_config": GLM_TEXT, "vision_config": GLM_VISION,
    },
    "glm 4.1v of 8 layers": {
        "model_type": "glm4v", "tie_word_embeddings": False,
        "text_config": {**GLM_TEXT, "num_hidden_layers": 8}, "vision_config": {**GLM_VISION, "depth": 6},
    },
    "glm 4.5v of 6 layers and 32 experts": {
        "model_type": "glm4v_moe", "tie_word_embeddings": False,
        "text_config": {
            "model_type": "glm4v_moe_text", "hidden_size": 4096, "intermediate_size": 10944, "num_hidden_layers": 6,
            "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151552,
            "n_routed_experts": 32, "num_experts_per_tok": 8, "moe_intermediate_size": 1408, "n_shared_experts": 1,
            "first_k_dense_replace": 1, "max_position_embeddings": 65536, "pad_token_id": 151329,
            "rope_parameters": GLM_ROPE,
        },
        "vision_config": {**GLM_VISION, "depth": 6, "intermediate_size": 10944},
    },
    "llava 1.5 7 B": {
        "model_type": "llava",
        "text_config": {
            "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32064,
            "max_position_embeddings": 4096, "tie_word_embeddings": False,
        },
        "vision_config": {
            "model_type": "clip_vision_model", "hidden_size": 1024, "intermediate_size": 4096,
            "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 336, "patch_size": 14,
            "projection_dim": 768,
        },
        "tie_word_embeddings": False,
    },
    "qwen2 vl 2 B, tied": {
        "model_type": "qwen2_vl",
        "text_config": {
            "model_type": "qwen2_vl_text", "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28,
            "num_attention_heads": 12, "num_key_value_heads": 2, "vocab_size": 151936,
            "max_position_embeddings": 32768, "tie_word_embeddings": True,
        },
        "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 1536, "num_heads": 16, "mlp_ratio": 4},
        "tie_word_embeddings": True,
    },
    "qwen2.5 vl 3 B, tied": {
        "model_type": "qwen2_5_vl",
        "text_config": {
            "model_type": "qwen2_5_vl_text", "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36,
            "num_attention_heads": 16, "num_key_value_heads": 2, "vocab_size": 151936,
            "max_position_embeddings": 128000, "tie_word_embeddings": True,
        },
        "vision_config": {
            "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "out_hidden_size": 2048,
            "hidden_act": "silu",
        },
        "tie_word_embeddings": True,
    },
    "gemma 3 4 B, tied": {
        "model_type": "gemma3", "mm_tokens_per_image": 256, "tie_word_embeddings": True,
        "text_config": {
            "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
            "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208,
            "max_position_embeddings": 131072, "sliding_window": 1024, "tie_word_embeddings": True,
        },
        "vision_config": {
            "model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304,
            "num_hidden_layers": 27, "num_attention_heads": 16, "image_size": 896, "patch_size": 14,
            "vision_use_head": False,
        },
    },
    "paligemma 3 B, tied": {
        "model_type": "paligemma", "projection_dim": 2048, "tie_word_embeddings": True,
        "text_config": {
            "model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 18,
            "num_attention_heads": 8, "num_key_value_heads": 1, "vocab_size": 257216, "tie_word_embeddings": True,
        },
        "vision_config": {**SIGLIP, "image_size": 448},
    },
    "paligemma 2 3 B, tied": {
        "model_type": "paligemma", "projection_dim": 2304, "tie_word_embeddings": True,
        "text_config": {
            "model_type": "gemma2", "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
            "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 257216, "tie_word_embeddings": True,
        },
        "vision_config": {**SIGLIP, "image_size": 448},
    },
    "internvl 3 2 B": {
        "model_type": "internvl", "tie_word_embeddings": False,
        "text_config": {
            "model_type": "qwen2", "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28,
            "num_attention_heads": 12, "num_key_value_heads": 2, "vocab_size": 151674, "tie_word_embeddings": False,
        },
        "vision_config": {
            "model_type": "internvl_vision", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
            "num_attention_heads": 16, "image_size": [448, 448], "patch_size": [14, 14], "attention_bias": True,
        },
    },
    "qwen3 vl 2 B, tied": {
        "model_type": "qwen3_vl", "tie_word_embeddings": True,
        "text_config": {
            "model_type": "qwen3_vl_text", "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28,
            "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
            "tie_word_embeddings": True,
        },
        "vision_config": {
            "depth": 24, "hidden_size": 1024, "intermediate_size": 4096, "num_heads": 16, "patch_size": 16,
            "out_hidden_size": 2048, "num_position_embeddings": 2304, "deepstack_visual_indexes": [5, 11, 17],
        },
    },
    "idefics2 8 B": {
        "model_type": "idefics2", "tie_word_embeddings": False,
        "text_config": {
            "model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32003, "pad_token_id": 0,
        },
        "vision_config": {**IDEFICS, "image_size": 980},
    },
    "smolvlm 2.2 B": {
        "model_type": "idefics3", "scale_factor": 3, "tie_word_embeddings": False,
        "text_config": {
            "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24,
            "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 49155, "pad_token_id": 2,
        },
        "vision_config": {**IDEFICS, "image_size": 384},
    },
    "llava onevision 0.5 B, tied": {
        "model_type": "llava_onevision", "tie_word_embeddings": True,
        "text_config": {
            "model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
            "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 152000, "tie_word_embeddings": True,
        },
        "vision_config": {**SIGLIP, "image_size": 384, "num_hidden_layers": 26},
    },
    "llava next 7 B": {
        "model_type": "llava_next", "tie_word_embeddings": False,
        "text_config": {
            "model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32064, "sliding_window": None,
        },
        "vision_config": {
            "model_type": "clip_vision_model", "hidden_size": 1024, "intermediate_size": 4096,
            "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 336, "patch_size": 14,
            "projection_dim": 768,
        },
        "image_grid_pinpoints": [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]],
    },
    "pixtral 12 B": {
        "model_type": "llava", "vision_feature_layer": -1, "vision_feature_select_strategy": "full",
        "tie_word_embeddings": False,
        "text_config": {
            "model_type": "mistral", "hidden_size": 5120, "intermediate_size": 14336, "num_hidden_layers": 40,
            "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 131072,
            "sliding_window": None,
        },
        "vision_config": {**PIXTRAL, "image_size": 1024, "patch_size": 16, "hidden_act": "gelu"},
    },
    "llama 3.2 vision 11 B": {
        "model_type": "mllama", "tie_word_embeddings": False,
        "text_config": {
            "model_type": "mllama_text_model", "hidden_size": 4096, "intermediate_size": 14336,
            "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
            "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38], "tie_word_embeddings": False,
        },
        "vision_config": {
            "model_type": "mllama_vision_model", "hidden_size": 1280, "intermediate_size": 5120,
            "num_hidden_layers": 32, "num_global_layers": 8, "attention_heads": 16, "image_size": 560,
            "patch_size": 14, "vision_output_dim": 7680, "max_num_tiles": 4,
        },
    },
    "mistral small 3.1 24 B": {
        "model_type": "mistral3", "spatial_merge_size": 2, "tie_word_embeddings": False,
        "text_config": {
            "model_type": "mistral", "hidden_size": 5120, "intermediate_size": 32768, "num_hidden_layers": 40,
            "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 131072,
            "sliding_window": None,
        },
        "vision_config": {**PIXTRAL, "image_size": 1540, "patch_size": 14, "hidden_act": "silu"},
    },
}  # fmt: skip

ONE = {"images": 1}

MERGER_ALONE = ["*", "!visual.merger"]
CASES: tuple[tuple[str, str, int, int, dict[str, Any]], ...] = (
    ("llava 1.5 7 B", "bf16", 2, 1024, {"images": 2}),
    ("llava 1.5 7 B", "bf16 + autocast", 4, 1024, {**LORA, **REENTRANT, **ONE}),
    ("llava 1.5 7 B", "bf16", 2, 1024, {"images": 2, "frozen_modules": ["*", "!multi_modal_projector"]}),
    ("qwen2.5 vl 3 B, tied", "bf16", 1, 2048, {"images": 1, "image_patches": 4096}),
    (
        "qwen2.5 vl 3 B, tied",
        "bf16",
        1,
        2048,
        {**ONE, "image_patches": 4096, "frozen_modules": ["*", "!visual.merger"]},
    ),
    ("qwen2 vl 2 B, tied", "fp32 + autocast", 1, 2048, {"images": 1, "image_patches": 4096, **GC}),
    ("gemma 3 4 B, tied", "bf16", 1, 1024, ONE),
    ("gemma 3 4 B, tied", "bf16 + autocast", 2, 2048, {**EVERY, **GC, **ONE}),
    ("gemma 3 4 B, tied", "bf16", 2, 512, {**LORA, **ONE}),
    ("paligemma 3 B, tied", "bf16", 1, 1280, ONE),
    ("paligemma 2 3 B, tied", "bf16 + autocast", 2, 1280, {**EVERY, **GC, **ONE, "attention": None}),
    ("internvl 3 2 B", "bf16", 1, 2048, {**ONE, "image_tiles": 5}),
    ("internvl 3 2 B", "bf16", 2, 2048, {**EVERY, **GC, **ONE, "image_tiles": 5}),
    ("qwen3 vl 2 B, tied", "bf16", 1, 2048, {**ONE, "image_patches": 4096}),
    ("qwen3 vl 2 B, tied", "fp32 + autocast", 1, 2048, {**GC, **ONE, "image_patches": 4096}),
    ("aya vision 8 B, tied", "bf16", 1, 2048, {**ONE, "image_tiles": 7, "optimizer": "sgd"}),
    ("aya vision 8 B, tied", "bf16 + autocast", 2, 2048, {**EVERY, **GC, **ONE, "image_tiles": 7}),
    ("command a vision of 8 layers, tied", "bf16", 1, 2048, {**LORA, **ONE, "image_tiles": 7}),
    ("lfm2 vl 1.6 B, tied", "bf16", 1, 2048, {**ONE, "image_tiles": 5}),
    ("lfm2 vl 1.6 B, tied", "fp32 + autocast", 2, 2048, {**GC, **ONE, "image_tiles": 3}),
    ("lfm2 vl 1.6 B, tied", "bf16 + autocast", 2, 2048, {**EVERY, **ONE, "image_tiles": 5}),
    ("glm 4.1v 9 B", "bf16", 1, 2048, {**ONE, "image_patches": 4096}),
    ("glm 4.1v 9 B", "bf16", 1, 1024, {**ONE, "image_patches": 4096, "attention": "eager"}),
    ("glm 4.1v 9 B", "fp32 + autocast", 2, 2048, {**GC, **ONE, "image_patches": 4096}),
    ("glm 4.1v of 8 layers", "bf16 + autocast", 2, 2048, {**LORA, **REENTRANT, **ONE, "image_patches": 4096}),
    ("glm 4.1v of 8 layers", "bf16", 2, 2048, {**EVERY, **ONE, "image_patches": 4096}),
    ("glm 4.5v of 6 layers and 32 experts", "bf16", 1, 2048, {**ONE, "image_patches": 4096, "optimizer": "sgd"}),
    ("glm 4.5v of 6 layers and 32 experts", "bf16", 2, 2048, {**EVERY, **GC, **ONE, "image_patches": 4096}),
    ("glm 4.5v of 6 layers and 32 experts", "bf16 + autocast", 2, 2048, {**LORA, **ONE, "image_patches": 4096}),
    ("idefics2 8 B", "bf16", 2, 1024, {**EVERY, **GC, **ONE, "image_tiles": 1}),
    ("smolvlm 2.2 B", "bf16 + autocast", 4, 2048, {**LORA, **REENTRANT, **ONE, "image_tiles": 17}),
    ("llava onevision 0.5 B, tied", "bf16", 1, 4096, {**ONE, "image_tiles": 5}),
    ("llava next 7 B", "bf16", 1, 4096, {**LORA, **GC, **ONE, "image_tiles": 5}),
    ("pixtral 12 B", "bf16", 1, 4608, {**LORA, **GC, **ONE, "image_patches": 4096}),
    ("mistral small 3.1 24 B", "bf16", 2, 2048, {**EVERY, **GC, **ONE, "image_patches": 4096}),
    ("llama 3.2 vision 11 B", "bf16", 1, 2048, ONE),
    ("llama 3.2 vision 11 B", "bf16", 2, 1024, {**GC, "images": 2}),
    ("llama 3.2 vision 11 B", "bf16", 2, 1024, {**LORA, **ONE}),
    ("llama 3.2 vision 11 B", "bf16 + autocast", 1, 2048, {**EVERY, **GC, **ONE}),
    ("llama 3.2 vision 11 B", "fp32 + autocast", 1, 1024, {**ONE, "frozen_modules": ["vision_model"]}),
)
