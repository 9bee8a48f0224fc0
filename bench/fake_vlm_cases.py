"""The vision-language cases of ``bench.fake_tensors``: models by their published sizes, and runs with images."""

from __future__ import annotations

from typing import Any

MODELS: dict[str, dict[str, Any]] = {
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
}  # fmt: skip

ONE = {"images": 1}
GC = {"gradient_checkpointing": True, "use_reentrant": False}
REENTRANT = {"gradient_checkpointing": True, "use_reentrant": True}
LORA = {
    "method": "lora", "lora_rank": 16, "lora_targets": ["q_proj", "k_proj", "v_proj", "o_proj"], "lora_dropout": 0.05,
}  # fmt: skip
EVERY = {**LORA, "lora_targets": "all-linear", "lora_dropout": 0.0}

CASES: tuple[tuple[str, str, int, int, dict[str, Any]], ...] = (
    ("llava 1.5 7 B", "bf16", 2, 1024, {"images": 2}),
    ("llava 1.5 7 B", "bf16 + autocast", 4, 1024, {**LORA, **REENTRANT, **ONE}),
    ("qwen2.5 vl 3 B, tied", "bf16", 1, 2048, {"images": 1, "image_patches": 4096}),
    ("qwen2 vl 2 B, tied", "fp32 + autocast", 1, 2048, {"images": 1, "image_patches": 4096, **GC}),
    ("gemma 3 4 B, tied", "bf16", 1, 1024, ONE),
    ("gemma 3 4 B, tied", "bf16 + autocast", 2, 2048, {**EVERY, **GC, **ONE}),
    ("gemma 3 4 B, tied", "bf16", 2, 512, {**LORA, **ONE}),
)
