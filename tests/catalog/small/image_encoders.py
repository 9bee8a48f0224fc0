"""Models whose image encoder takes images of one size, or tiles of one size."""

from __future__ import annotations

from typing import Any

from tests.catalog.small.sizes import (
    GEMMA4_ROUTED,
    GEMMA4_SMALL,
    GROUPED,
    LATENT,
    LLAMA4,
    PADDED,
    PIXTRAL,
    ROUTED,
    SMALL,
    TOWER,
)

SIGLIP = {**TOWER, "model_type": "siglip_vision_model"}
BARE = {**SIGLIP, "vision_use_head": False}
CLIP = {**TOWER, "model_type": "clip_vision_model"}
INTERN = {**TOWER, "model_type": "internvl_vision"}
PERCEIVER = {
    "hidden_size": 64,
    "resampler_n_latents": 6,
    "resampler_depth": 2,
    "resampler_n_heads": 4,
    "resampler_head_dim": 10,
    "num_key_value_heads": 2,
}
SIGLIP2: dict[str, Any] = {
    "model_type": "siglip2_vision_model",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "patch_size": 4,
    "num_patches": 16,
}
PHI4_VISION: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 56,
    "crop_size": 56,
}
PHI4_AUDIO: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_blocks": 2,
    "num_attention_heads": 4,
    "ext_pw_out_channel": 32,
    "depthwise_separable_out_channel": 32,
    "nemo_conv_channels": 16,
    "input_size": 20,
}
MLLAMA_VISION: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_global_layers": 1,
    "attention_heads": 4,
    "intermediate_size": 48,
    "vision_output_dim": 64,
    "image_size": 28,
    "intermediate_layers_indices": [0],
}
LLAMA4_VISION = {**TOWER, "vision_output_dim": 24, "projector_input_dim": 40, "projector_output_dim": 24}
GEMMA4_VISION = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "patch_size": 4,
    "position_embedding_size": 100,
}
GEMMA4_AUDIO = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "output_proj_dims": 40,
    "subsampling_conv_channels": [16, 8],
}
OVIS: dict[str, Any] = {**TOWER, "vocab_size": 70}
JANUS: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 28,
    "patch_size": 14,
    "mlp_ratio": 1.5,
    "projection_dim": 64,
}
DRAWN: dict[str, Any] = {
    "num_embeddings": 50,
    "latent_channels": 16,
    "base_channels": 32,
    "channel_multiplier": [1, 2, 2],
    "projection_dim": 64,
    "image_token_embed_dim": 64,
}
UNIFIED: dict[str, Any] = {**PADDED, "head_dim": 16, "global_head_dim": 24, "num_hidden_layers": 7}
UNIFIED_VISION: dict[str, Any] = {
    "patch_size": 4,
    "pooling_kernel_size": 2,
    "mm_embed_dim": 40,
    "mm_posemb_size": 12,
    "output_proj_dims": 40,
}
QUANTISED = {"base_channels": 32, "latent_channels": 32, "embed_dim": 16, "num_embeddings": 64, "num_res_blocks": 1}
CHAMELEON = {**GROUPED, "vocabulary_map": {"<image>": 5, "IMGIMGAZ": 6}, "vq_config": QUANTISED}
QFORMER: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "max_position_embeddings": 20,
}
OPT: dict[str, Any] = {
    "model_type": "opt",
    "hidden_size": 64,
    "ffn_dim": 176,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "vocab_size": 1000,
    "max_position_embeddings": 50,
    "word_embed_proj_dim": 64,
}
FLAN: dict[str, Any] = {
    "model_type": "t5",
    "d_model": 64,
    "d_kv": 8,
    "d_ff": 176,
    "num_layers": 2,
    "num_heads": 8,
    "vocab_size": 1000,
    "feed_forward_proj": "gated-gelu",
    "tie_word_embeddings": False,
}
BART: dict[str, Any] = {
    "model_type": "bart",
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 56,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "vocab_size": 1000,
    "max_position_embeddings": 50,
}
DAVIT: dict[str, Any] = {
    "depths": [1, 2, 3],
    "patch_size": [7, 3, 3],
    "patch_stride": [4, 2, 2],
    "patch_padding": [3, 1, 1],
    "patch_prenorm": [False, True, True],
    "embed_dim": [16, 24, 32],
    "num_heads": [2, 3, 4],
    "num_groups": [2, 3, 4],
    "projection_dim": 32,
    "max_position_embeddings": 7,
}
BLIP2: dict[str, Any] = {"vision_config": TOWER, "qformer_config": QFORMER, "num_query_tokens": 6}

CASES: list[tuple[str, dict[str, Any]]] = [
    ("florence2", {"text_config": BART, "vision_config": DAVIT}),
    ("florence2", {"text_config": BART, "vision_config": {**DAVIT, "qkv_bias": False, "mlp_ratio": 2.0}}),
    ("blip-2", {**BLIP2, "text_config": OPT}),
    ("blip-2", {**BLIP2, "text_config": FLAN}),
    (
        "blip-2",
        {
            **BLIP2,
            "text_config": OPT,
            "vision_config": {**TOWER, "qkv_bias": False},
            "qformer_config": {**QFORMER, "cross_attention_frequency": 3, "use_qformer_text_input": True},
        },
    ),
    ("instructblip", {**BLIP2, "text_config": {**GROUPED, "model_type": "llama"}}),
    ("instructblip", {**BLIP2, "text_config": FLAN}),
    ("phi4_multimodal", {**PADDED, "vision_config": PHI4_VISION, "audio_config": PHI4_AUDIO}),
    (
        "phi4_multimodal",
        {
            **PADDED,
            "tie_word_embeddings": True,
            "vision_config": {**PHI4_VISION, "image_size": 42},
            "audio_config": {**PHI4_AUDIO, "time_reduction": 4, "bias_symmetric": True, "kernel_size": 5},
        },
    ),
    ("gemma3", {"text_config": {**GROUPED, "head_dim": 16, "model_type": "gemma3_text"}, "vision_config": SIGLIP}),
    (
        "gemma3",
        {
            "text_config": {
                "hidden_size": 64,
                "intermediate_size": 176,
                "num_hidden_layers": 3,
                "model_type": "gemma3_text",
            },
            "vision_config": {**SIGLIP, "vision_use_head": False},
        },
    ),
    ("llava", {"text_config": {**SMALL, "model_type": "llama"}, "vision_config": CLIP}),
    ("llava", {"text_config": {**GROUPED, "model_type": "qwen2"}, "vision_config": SIGLIP}),
    ("llava", {"text_config": {"model_type": "llama", "vocab_size": 32064, "num_hidden_layers": 2}}),
    (
        "vipllava",
        {"text_config": {**GROUPED, "model_type": "llama"}, "vision_config": CLIP, "vision_feature_layer": [-2, 0, 1]},
    ),
    ("video_llava", {"text_config": {**GROUPED, "model_type": "llama"}, "vision_config": CLIP}),
    ("llava_next", {"text_config": {**GROUPED, "model_type": "mistral"}, "vision_config": CLIP}),
    ("llava_next_video", {"text_config": {**GROUPED, "model_type": "mistral"}, "vision_config": CLIP}),
    (
        "llava_next_video",
        {
            "text_config": {**GROUPED, "model_type": "qwen2", "tie_word_embeddings": True},
            "vision_config": CLIP,
            "spatial_pool_mode": "conv",
            "spatial_pool_out_channels": 24,
        },
    ),
    (
        "aya_vision",
        {
            "text_config": {**PADDED, "model_type": "cohere2", "head_dim": 16},
            "vision_config": BARE,
            "alignment_intermediate_size": 96,
        },
    ),
    ("aya_vision", {"text_config": {**PADDED, "model_type": "cohere"}, "vision_config": SIGLIP}),
    (
        "cohere2_vision",
        {
            "text_config": {**PADDED, "model_type": "cohere2", "head_dim": 16},
            "vision_config": SIGLIP,
            "alignment_intermediate_size": 96,
        },
    ),
    ("lfm2_vl", {"text_config": {**GROUPED, "model_type": "lfm2", "full_attn_idxs": [1]}, "vision_config": SIGLIP2}),
    (
        "lfm2_vl",
        {
            "text_config": {**GROUPED, "model_type": "lfm2", "full_attn_idxs": [1], "block_ff_dim": 200},
            "vision_config": {**SIGLIP2, "vision_use_head": False},
            "projector_bias": False,
            "projector_use_layernorm": False,
            "projector_hidden_size": 96,
            "tie_word_embeddings": False,
        },
    ),
    ("deepseek_vl", {"text_config": {**GROUPED, "model_type": "llama"}, "vision_config": BARE}),
    (
        "deepseek_vl",
        {"text_config": {**GROUPED, "model_type": "llama"}, "vision_config": SIGLIP, "tie_word_embeddings": False},
    ),
    ("janus", {"text_config": {**GROUPED, "model_type": "llama"}, "vision_config": JANUS, "vq_config": DRAWN}),
    (
        "janus",
        {
            "text_config": {**GROUPED, "model_type": "llama"},
            "vision_config": {**JANUS, "depth": 3, "attention_bias": False, "use_qk_norm": True},
            "vq_config": {**DRAWN, "double_latent": True, "num_res_blocks": 1, "num_hidden_layers": 1},
            "tie_word_embeddings": False,
        },
    ),
    ("gemma4", {"text_config": GEMMA4_ROUTED, "vision_config": GEMMA4_VISION}),
    ("gemma4", {"text_config": GEMMA4_SMALL, "vision_config": GEMMA4_VISION, "audio_config": GEMMA4_AUDIO}),
    (
        "gemma4_unified",
        {"text_config": UNIFIED, "vision_config": UNIFIED_VISION, "audio_config": {"audio_embed_dim": 20}},
    ),
    (
        "gemma4_unified",
        {
            "text_config": {**UNIFIED, "num_global_key_value_heads": 1, "attention_k_eq_v": True},
            "tie_word_embeddings": False,
        },
    ),
    (
        "ovis2",
        {
            "text_config": {**GROUPED, "model_type": "qwen2"},
            "vision_config": {**OVIS, "hidden_stride": 2},
            "hidden_size": 64,
            "vocab_size": 1000,
        },
    ),
    (
        "ovis2",
        {
            "text_config": {**GROUPED, "model_type": "qwen2"},
            "vision_config": {**OVIS, "qkv_bias": True, "mlp_bias": True},
            "hidden_size": 64,
            "vocab_size": 1000,
            "tie_word_embeddings": False,
        },
    ),
    ("llama4", {"text_config": {**LLAMA4, "model_type": "llama4_text"}, "vision_config": LLAMA4_VISION}),
    (
        "paligemma",
        {
            "text_config": {**GROUPED, "head_dim": 16, "model_type": "gemma"},
            "vision_config": BARE,
            "projection_dim": 64,
        },
    ),
    (
        "paligemma",
        {
            "text_config": {**GROUPED, "head_dim": 16, "model_type": "gemma2"},
            "vision_config": SIGLIP,
            "projection_dim": 64,
        },
    ),
    ("llava", {"text_config": {**GROUPED, "model_type": "mistral"}, "vision_config": PIXTRAL}),
    ("llava_onevision", {"text_config": {**GROUPED, "model_type": "qwen2"}, "vision_config": BARE}),
    (
        "llava_onevision",
        {"text_config": {**GROUPED, "model_type": "qwen2", "tie_word_embeddings": True}, "vision_config": BARE},
    ),
    (
        "mistral3",
        {
            "text_config": {**LATENT, **ROUTED, "q_lora_rank": 20, "num_key_value_heads": 8, "model_type": "mistral4"},
            "vision_config": PIXTRAL,
            "tie_word_embeddings": False,
        },
    ),
    (
        "mistral3",
        {
            "text_config": {**GROUPED, "model_type": "mistral"},
            "vision_config": PIXTRAL,
            "tie_word_embeddings": True,
        },
    ),
    (
        "mistral3",
        {
            "text_config": GROUPED,
            "spatial_merge_size": 1,
            "multimodal_projector_bias": True,
            "tie_word_embeddings": False,
        },
    ),
    (
        "internvl",
        {
            "text_config": {**GROUPED, "model_type": "qwen2"},
            "vision_config": INTERN,
            "tie_word_embeddings": True,
        },
    ),
    (
        "internvl",
        {
            "text_config": {**GROUPED, "model_type": "qwen3", "head_dim": 16},
            "vision_config": {
                **INTERN,
                "norm_type": "rms_norm",
                "use_qk_norm": True,
                "attention_bias": True,
                "use_mean_pooling": False,
                "image_size": [28, 28],
                "patch_size": [14, 14],
            },
            "tie_word_embeddings": False,
        },
    ),
    (
        "idefics2",
        {"text_config": {**GROUPED, "model_type": "mistral"}, "vision_config": BARE, "perceiver_config": PERCEIVER},
    ),
    ("idefics3", {"text_config": {**PADDED, "model_type": "llama"}, "vision_config": BARE}),
    (
        "smolvlm",
        {
            "text_config": {**PADDED, "model_type": "llama"},
            "vision_config": {**BARE, "image_size": 56},
            "scale_factor": 4,
            "tie_word_embeddings": True,
        },
    ),
    ("mllama", {"text_config": {**PADDED, "cross_attention_layers": [1]}, "vision_config": MLLAMA_VISION}),
    ("mllama", {"text_config": {**PADDED, "cross_attention_layers": [1, 8]}, "vision_config": MLLAMA_VISION}),
    (
        "mllama",
        {
            "architectures": ["MllamaForCausalLM"],
            "text_config": {**PADDED, "cross_attention_layers": [0, 2], "tie_word_embeddings": True},
            "vision_config": MLLAMA_VISION,
        },
    ),
    ("chameleon", CHAMELEON),
    (
        "chameleon",
        {**CHAMELEON, "swin_norm": True, "attention_bias": True, "vq_config": {**QUANTISED, "attn_type": "none"}},
    ),
]
