"""Small configs of every architecture, with the variations that change its parameters."""

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
GPT2: dict[str, Any] = {"n_embd": 64, "n_layer": 3, "n_head": 4, "vocab_size": 1000}
OPT: dict[str, Any] = {
    "hidden_size": 64,
    "ffn_dim": 176,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "vocab_size": 1000,
}
FALCON: dict[str, Any] = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 8, "vocab_size": 1000}
LATENT: dict[str, Any] = {
    **SMALL,
    "kv_lora_rank": 24,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 12,
}
ROUTED: dict[str, Any] = {"n_routed_experts": 4, "moe_intermediate_size": 40, "num_experts_per_tok": 2}
DEEPSEEK: dict[str, Any] = {**LATENT, **ROUTED, "n_group": 2, "topk_group": 1}
TOWER: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 28,
    "patch_size": 14,
}
SIGLIP = {**TOWER, "model_type": "siglip_vision_model"}
BARE = {**SIGLIP, "vision_use_head": False}
CLIP = {**TOWER, "model_type": "clip_vision_model"}
PIXTRAL = {**TOWER, "model_type": "pixtral", "head_dim": 8}
INTERN = {**TOWER, "model_type": "internvl_vision"}
PERCEIVER = {
    "hidden_size": 64,
    "resampler_n_latents": 6,
    "resampler_depth": 2,
    "resampler_n_heads": 4,
    "resampler_head_dim": 10,
    "num_key_value_heads": 2,
}
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
SIGLIP2: dict[str, Any] = {
    "model_type": "siglip2_vision_model",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "patch_size": 4,
    "num_patches": 16,
}
BAMBA: dict[str, Any] = {"mamba_n_heads": 8, "mamba_d_state": 16, "mamba_n_groups": 2, "pad_token_id": 0}
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
LLAMA4: dict[str, Any] = {**PADDED, "head_dim": 16, "num_local_experts": 4, "intermediate_size_mlp": 96}
LLAMA4_VISION = {**TOWER, "vision_output_dim": 24, "projector_input_dim": 40, "projector_output_dim": 24}
GEMMA3N: dict[str, Any] = {
    **GROUPED,
    "num_hidden_layers": 6,
    "head_dim": 16,
    "hidden_size_per_layer_input": 6,
    "vocab_size_per_layer_input": 900,
    "num_kv_shared_layers": 2,
    "laurel_rank": 8,
    "altup_num_inputs": 3,
    "layer_types": ["sliding_attention", "full_attention"] * 3,
}
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
T5: dict[str, Any] = {"d_model": 64, "d_kv": 16, "d_ff": 100, "num_layers": 3, "num_heads": 4, "vocab_size": 1000}
EXPERTS = {"num_experts": 6, "moe_intermediate_size": 40, "num_experts_per_tok": 2}
DELTA = {**GROUPED, "head_dim": 16, "num_hidden_layers": 5, "linear_num_key_heads": 2, "linear_num_value_heads": 4}
DELTA_LAYERS = ["full_attention", "linear_attention", "linear_attention", "full_attention", "linear_attention"]
DELTA_VISION = {**QWEN2_5_VISION, "num_position_embeddings": 64}

CASES: list[tuple[str, dict[str, Any]]] = [
    ("llama", GROUPED),
    ("llama", {**SMALL, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
    ("llama", {**GROUPED, "head_dim": 16}),
    ("mistral", {**GROUPED, "head_dim": 32}),
    ("mistral", {**GROUPED, "head_dim": None}),
    ("mistral", SMALL),
    ("qwen2", {**GROUPED, "tie_word_embeddings": True}),
    ("qwen3", GROUPED),
    ("qwen3", {**GROUPED, "head_dim": 16, "attention_bias": True}),
    ("gemma", {**GROUPED, "head_dim": 16}),
    ("gemma2", {**GROUPED, "head_dim": 16}),
    ("gemma3_text", {**GROUPED, "head_dim": 16}),
    ("gemma3_text", {"hidden_size": 64, "intermediate_size": 176, "num_hidden_layers": 3}),
    ("gpt2", GPT2),
    ("gpt2", {**GPT2, "n_inner": 100, "tie_word_embeddings": False}),
    ("opt", OPT),
    ("opt", {**OPT, "word_embed_proj_dim": 32, "do_layer_norm_before": False}),
    ("opt", {**OPT, "enable_bias": False, "layer_norm_elementwise_affine": False}),
    ("opt", {**OPT, "word_embed_proj_dim": 32, "tie_word_embeddings": False}),
    ("gpt_neox", SMALL),
    ("gpt_neox", {**SMALL, "attention_bias": False, "tie_word_embeddings": True, "use_parallel_residual": False}),
    ("phi3", PADDED),
    ("phi3", {**SMALL, "pad_token_id": 0, "tie_word_embeddings": True}),
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
    ("phi", SMALL),
    ("phi", {**GROUPED, "qk_layernorm": True}),
    ("mixtral", {**GROUPED, "num_local_experts": 4}),
    ("qwen2_moe", {**GROUPED, **EXPERTS, "shared_expert_intermediate_size": 80}),
    (
        "qwen2_moe",
        {
            **GROUPED,
            **EXPERTS,
            "shared_expert_intermediate_size": 80,
            "decoder_sparse_step": 2,
            "mlp_only_layers": [1],
        },
    ),
    ("qwen3_moe", {**GROUPED, **EXPERTS}),
    ("qwen3_moe", {**GROUPED, **EXPERTS, "head_dim": 16, "mlp_only_layers": [0], "tie_word_embeddings": True}),
    (
        "gpt_neo",
        {
            "hidden_size": 64,
            "num_layers": 4,
            "num_heads": 4,
            "vocab_size": 1000,
            "attention_types": [[["global", "local"], 2]],
        },
    ),
    ("gptj", {**GPT2, "rotary_dim": 8}),
    ("codegen", {**GPT2, "rotary_dim": 8}),
    ("bloom", {"hidden_size": 64, "n_layer": 3, "n_head": 4, "vocab_size": 1000}),
    ("bloom", {"n_embed": 64, "n_layer": 3, "num_attention_heads": 4, "vocab_size": 1000}),
    ("falcon", FALCON),
    ("falcon", {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2}),
    ("falcon", {**FALCON, "parallel_attn": False, "multi_query": False, "bias": True, "alibi": True}),
    (
        "falcon",
        {
            **FALCON,
            "new_decoder_architecture": True,
            "num_kv_heads": 2,
            "num_ln_in_parallel_attn": 1,
            "ffn_hidden_size": 100,
            "tie_word_embeddings": False,
        },
    ),
    ("mpt", {"d_model": 64, "n_heads": 4, "n_layers": 3, "vocab_size": 1000}),
    ("gpt_bigcode", GPT2),
    ("gpt_bigcode", {**GPT2, "multi_query": False}),
    ("starcoder2", GROUPED),
    ("starcoder2", {**GROUPED, "use_bias": False, "tie_word_embeddings": False}),
    ("nemotron", {**GROUPED, "head_dim": 16}),
    ("nemotron", {**GROUPED, "head_dim": 8, "attention_bias": True, "mlp_bias": True}),
    ("stablelm", GROUPED),
    ("stablelm", {**GROUPED, "use_qkv_bias": True, "qk_layernorm": True, "use_parallel_residual": True}),
    ("cohere", GROUPED),
    ("cohere", {**GROUPED, "use_qk_norm": True, "attention_bias": True}),
    ("cohere2", {**GROUPED, "head_dim": 16}),
    ("granite", {**GROUPED, "tie_word_embeddings": True}),
    ("granite", {**SMALL, "attention_bias": True, "mlp_bias": True}),
    ("hyperclovax", {**GROUPED, "tie_word_embeddings": True}),
    ("hyperclovax", {**SMALL, "use_post_norm": False, "attention_bias": True, "mlp_bias": True, "head_dim": 16}),
    ("youtu", {**LATENT, "q_lora_rank": 20}),
    ("youtu", {**LATENT, "q_lora_rank": None, "attention_bias": True, "tie_word_embeddings": False}),
    ("solar_open", {**GROUPED, **ROUTED, "head_dim": 16}),
    ("solar_open", {**GROUPED, **ROUTED, "attention_bias": True, "n_shared_experts": 2}),
    ("afmoe", {**PADDED, **EXPERTS, "head_dim": 16, "num_shared_experts": 1}),
    ("afmoe", {**PADDED, **EXPERTS, "num_dense_layers": 2, "attention_bias": True, "tie_word_embeddings": True}),
    ("granitemoe", {**GROUPED, "num_local_experts": 4}),
    ("granitemoeshared", {**GROUPED, "num_local_experts": 4, "shared_intermediate_size": 40}),
    ("granitemoeshared", {**SMALL, "num_local_experts": 4, "attention_bias": True, "tie_word_embeddings": True}),
    ("olmo", {**SMALL, "tie_word_embeddings": True}),
    ("olmo2", GROUPED),
    ("olmo3", GROUPED),
    ("olmoe", {**GROUPED, "num_experts": 4}),
    ("cwm", {**PADDED, "num_hidden_layers": 6}),
    ("bamba", {**GROUPED, **BAMBA, "attn_layer_indices": [1]}),
    ("bamba", {**GROUPED, **BAMBA, "attention_bias": True, "mlp_bias": True, "mamba_proj_bias": True}),
    ("bitnet", GROUPED),
    ("bitnet", {**GROUPED, "attention_bias": True, "tie_word_embeddings": True}),
    ("flex_olmo", {**PADDED, "num_experts": 4}),
    ("lfm2_moe", {**PADDED, **EXPERTS, "layer_types": ["conv", "full_attention", "conv"]}),
    ("lfm2_moe", {**PADDED, **EXPERTS, "layer_types": ["full_attention"] * 3, "num_dense_layers": 0}),
    ("glm", {**PADDED, "head_dim": 8}),
    ("glm4", {**PADDED, "head_dim": 8, "attention_bias": False}),
    ("glm4_moe", {**GROUPED, **ROUTED, "head_dim": 8, "use_qk_norm": True, "attention_bias": True}),
    ("glm4_moe", {**GROUPED, **ROUTED, "head_dim": 8, "first_k_dense_replace": 2}),
    ("deepseek_v3", {**DEEPSEEK, "q_lora_rank": 20}),
    (
        "deepseek_v3",
        {**DEEPSEEK, "q_lora_rank": None, "attention_bias": True, "first_k_dense_replace": 1, "n_shared_experts": 2},
    ),
    ("deepseek_v2", {**LATENT, **ROUTED, "q_lora_rank": None, "first_k_dense_replace": 1}),
    ("deepseek_v2", {**LATENT, **ROUTED, "q_lora_rank": 20}),
    ("deepseek_v2", {**LATENT, **ROUTED, "q_lora_rank": 20, "mlp_bias": True, "first_k_dense_replace": 1}),
    ("minicpm3", {**LATENT, "q_lora_rank": 20}),
    ("phimoe", {**GROUPED, "num_local_experts": 4}),
    ("phimoe", {**GROUPED, "num_local_experts": 4, "attention_bias": True, "lm_head_bias": True}),
    ("gpt_oss", {**GROUPED, "head_dim": 8, "num_local_experts": 4}),
    ("ministral3", {**GROUPED, "head_dim": 16}),
    ("minimax_m2", {**GROUPED, "head_dim": 16, "num_local_experts": 4}),
    ("glm4_moe_lite", {**LATENT, **ROUTED, "q_lora_rank": 20}),
    ("glm4_moe_lite", {**LATENT, **ROUTED, "q_lora_rank": 20, "mlp_layer_types": ["dense", "dense", "sparse"]}),
    ("deepseek_v32", {**DEEPSEEK, "q_lora_rank": 20, "first_k_dense_replace": 1, "index_n_heads": 2}),
    ("deepseek_v32", {**DEEPSEEK, "q_lora_rank": 20, "mlp_layer_types": ["sparse", "dense", "sparse"]}),
    ("qwen3_next", {**GROUPED, **EXPERTS, "head_dim": 16, "num_hidden_layers": 5, "linear_num_value_heads": 4}),
    (
        "qwen3_next",
        {**GROUPED, **EXPERTS, "layer_types": ["full_attention", "linear_attention", "full_attention"]},
    ),
    ("internlm3", GROUPED),
    ("smollm3", PADDED),
    ("seed_oss", GROUPED),
    ("exaone4", GROUPED),
    ("ernie4_5", {**GROUPED, "head_dim": 8, "use_bias": True}),
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
    ("llava_next", {"text_config": {**GROUPED, "model_type": "mistral"}, "vision_config": CLIP}),
    ("qwen2_vl", {"text_config": GROUPED, "vision_config": QWEN2_VISION}),
    ("qwen2_vl", {**GROUPED, "vision_config": QWEN2_VISION, "tie_word_embeddings": True}),
    ("qwen2_5_vl", {"text_config": GROUPED, "vision_config": QWEN2_5_VISION}),
    ("qwen2_5_vl", {**GROUPED, "vision_config": QWEN2_5_VISION, "tie_word_embeddings": True}),
    ("qwen3_vl", {"text_config": GROUPED, "vision_config": QWEN3_VISION, "tie_word_embeddings": True}),
    ("qwen3_vl_moe", {"text_config": QWEN3_MOE, "vision_config": QWEN3_VISION}),
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
    ("glm4v", {"text_config": PADDED, "vision_config": GLM4V_VISION}),
    (
        "glm4v",
        {
            "text_config": {**PADDED, "tie_word_embeddings": True},
            "vision_config": {**GLM4V_VISION, "attention_bias": True, "spatial_merge_size": 1},
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
    ("hunyuan_v1_dense", {**GROUPED, "head_dim": 16, "tie_word_embeddings": True}),
    ("hunyuan_v1_dense", {**GROUPED, "head_dim": 8, "attention_bias": True}),
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
    ("arcee", {**GROUPED, "attention_bias": True, "mlp_bias": True}),
    ("apertus", {**PADDED, "attention_bias": True}),
    ("apertus", {**PADDED, "hidden_act": "silu", "tie_word_embeddings": True}),
    ("dots1", {**GROUPED, **ROUTED, "n_shared_experts": 2, "first_k_dense_replace": 1}),
    ("dots1", {**GROUPED, **ROUTED, "n_shared_experts": 1, "attention_bias": True}),
    ("ernie4_5_moe", {**GROUPED, "moe_intermediate_size": 40, "moe_num_experts": 4, "moe_k": 2}),
    (
        "ernie4_5_moe",
        {
            **GROUPED,
            "moe_intermediate_size": 40,
            "moe_num_experts": 4,
            "moe_num_shared_experts": 0,
            "moe_layer_start_index": 0,
            "moe_layer_end_index": 1,
            "use_bias": True,
            "tie_word_embeddings": False,
        },
    ),
    ("hunyuan_v1_moe", {**PADDED, "head_dim": 16, "num_experts": 4, "moe_topk": [2, 2, 2], "attention_bias": True}),
    ("gemma3n_text", GEMMA3N),
    ("gemma3n_text", {**GEMMA3N, "intermediate_size": [100, 100, 120, 120, 120, 100], "attention_bias": True}),
    ("gemma4_text", GEMMA4),
    ("gemma4_text", {**GEMMA4_SMALL, "tie_word_embeddings": False}),
    ("gemma4_text", {**GEMMA4_SMALL, "use_double_wide_mlp": False, "attention_bias": True}),
    ("gemma4_text", GEMMA4_ROUTED),
    ("gemma4", {"text_config": GEMMA4_ROUTED, "vision_config": GEMMA4_VISION}),
    ("gemma4", {"text_config": GEMMA4_SMALL, "vision_config": GEMMA4_VISION, "audio_config": GEMMA4_AUDIO}),
    ("llama4_text", LLAMA4),
    ("llama4_text", {**LLAMA4, "interleave_moe_layer_step": 2, "attention_bias": True, "tie_word_embeddings": True}),
    ("llama4_text", {**LLAMA4, "moe_layers": [0, 2]}),
    ("llama4", {"text_config": {**LLAMA4, "model_type": "llama4_text"}, "vision_config": LLAMA4_VISION}),
    ("qwen3_5", {"text_config": DELTA, "vision_config": DELTA_VISION, "tie_word_embeddings": True}),
    ("qwen3_5", {"text_config": {**DELTA, "full_attention_interval": 3}, "vision_config": DELTA_VISION}),
    ("qwen3_5_text", {**DELTA, "attention_bias": True, "tie_word_embeddings": True}),
    ("qwen3_5_moe", {"text_config": {**DELTA, **EXPERTS}, "vision_config": DELTA_VISION}),
    ("qwen3_5_moe_text", {**DELTA, **EXPERTS, "shared_expert_intermediate_size": 24, "layer_types": DELTA_LAYERS}),
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
    ("t5", T5),
    (
        "t5",
        {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "num_decoder_layers": 2},
    ),
    ("mt5", {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    ("umt5", {**T5, "feed_forward_proj": "gated-gelu"}),
    ("bert", SMALL),
    ("bert", {**SMALL, "tie_word_embeddings": False}),
    ("roberta", {**SMALL, "max_position_embeddings": 514, "type_vocab_size": 1}),
]
