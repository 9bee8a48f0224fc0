"""The cases of ``bench.fake_tensors``: models by their configs, and what is run of each, as lintfit's specs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench import fake_halves_cases, fake_hybrid_cases, fake_vlm_cases
from bench.fake_settings import EVERY, GC, LORA, REENTRANT

MODELS: dict[str, dict[str, Any]] = {
    "llama 1.2 B, tied": {
        "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256,
        "max_position_embeddings": 8192, "tie_word_embeddings": True,
    },
    "llama 8 B": {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
        "max_position_embeddings": 8192, "tie_word_embeddings": False,
    },
    "llama 8 B, few words": {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 8192,
        "max_position_embeddings": 8192, "tie_word_embeddings": False,
    },
    "pythia 6.9 B, few words": {
        "model_type": "gpt_neox", "hidden_size": 4096, "intermediate_size": 16384, "num_hidden_layers": 32,
        "num_attention_heads": 32, "vocab_size": 8192, "max_position_embeddings": 2048, "rotary_pct": 0.25,
        "tie_word_embeddings": False,
    },
    "command r7b, few words": {
        "model_type": "cohere2", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 8192, "sliding_window": 4096,
        "max_position_embeddings": 8192, "tie_word_embeddings": True,
    },
    "mistral 7 B": {
        "model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000,
        "max_position_embeddings": 32768, "sliding_window": None, "tie_word_embeddings": False,
    },
    "qwen2 1.5 B, tied": {
        "model_type": "qwen2", "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28,
        "num_attention_heads": 12, "num_key_value_heads": 2, "vocab_size": 151936,
        "max_position_embeddings": 32768, "tie_word_embeddings": True,
    },
    "qwen3 4 B, tied": {
        "model_type": "qwen3", "hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
        "max_position_embeddings": 32768, "tie_word_embeddings": True,
    },
    "gemma2 2.6 B, tied": {
        "model_type": "gemma2", "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 256000,
        "max_position_embeddings": 8192, "sliding_window": 4096, "tie_word_embeddings": True,
    },
    "phi3 3.8 B": {
        "model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32064,
        "max_position_embeddings": 4096, "pad_token_id": 32000, "tie_word_embeddings": False,
    },
    "gpt2 355 M, tied": {
        "model_type": "gpt2", "n_embd": 1024, "n_layer": 24, "n_head": 16, "n_positions": 1024, "vocab_size": 50257,
    },
    "mixtral 46.7 B": {
        "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "num_local_experts": 8,
        "num_experts_per_tok": 2, "max_position_embeddings": 32768, "sliding_window": None,
        "tie_word_embeddings": False,
    },
    "olmoe 6.9 B": {
        "model_type": "olmoe", "hidden_size": 2048, "intermediate_size": 1024, "num_hidden_layers": 16,
        "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 50304, "num_experts": 64,
        "num_experts_per_tok": 8, "max_position_embeddings": 4096, "tie_word_embeddings": False,
    },
    "deepseek v2 lite 15.7 B": {
        "model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408,
        "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 102400,
        "n_routed_experts": 64, "num_experts_per_tok": 6, "n_shared_experts": 2, "first_k_dense_replace": 1,
        "n_group": 1, "topk_group": 1, "topk_method": "greedy", "q_lora_rank": None, "kv_lora_rank": 512,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
    },
    "glm 4.7 flash 29.9 B": {
        "model_type": "glm4_moe_lite", "hidden_size": 2048, "intermediate_size": 10240, "moe_intermediate_size": 1536,
        "num_hidden_layers": 47, "num_attention_heads": 20, "num_key_value_heads": 20, "vocab_size": 154880,
        "n_routed_experts": 64, "num_experts_per_tok": 4, "n_shared_experts": 1, "q_lora_rank": 768,
        "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256,
        "max_position_embeddings": 202752, "tie_word_embeddings": False,
    },
    "gpt-oss 20.9 B": {
        "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 24,
        "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088,
        "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128, "pad_token_id": 199999,
        "max_position_embeddings": 131072, "tie_word_embeddings": False,
    },
    "gpt-j 6.1 B": {
        "model_type": "gptj", "n_embd": 4096, "n_layer": 28, "n_head": 16, "rotary_dim": 64, "vocab_size": 50400,
        "n_positions": 2048, "attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "tie_word_embeddings": False,
    },
    "starcoder 15.5 B, tied": {
        "model_type": "gpt_bigcode", "n_embd": 6144, "n_layer": 40, "n_head": 48, "n_inner": 24576,
        "n_positions": 8192, "vocab_size": 49152, "multi_query": True,
    },
    "afm 4.6 B": {
        "model_type": "arcee", "hidden_size": 2560, "intermediate_size": 18432, "num_hidden_layers": 36,
        "num_attention_heads": 20, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 128004,
        "max_position_embeddings": 65536, "hidden_act": "relu2", "tie_word_embeddings": False,
    },
    "hunyuan 1.8 B, tied": {
        "model_type": "hunyuan_v1_dense", "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 32,
        "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 120818,
        "max_position_embeddings": 262144, "tie_word_embeddings": True,
    },
    "granite moe 3.3 B, tied": {
        "model_type": "granitemoe", "hidden_size": 1536, "intermediate_size": 512, "num_hidden_layers": 32,
        "num_attention_heads": 24, "num_key_value_heads": 8, "num_local_experts": 40, "num_experts_per_tok": 8,
        "vocab_size": 49152, "max_position_embeddings": 4096, "embedding_multiplier": 12.0,
        "residual_multiplier": 0.22, "attention_multiplier": 0.015625, "logits_scaling": 6.0,
        "tie_word_embeddings": True,
    },
    "granite moe shared of 6 layers, tied": {
        "model_type": "granitemoeshared", "hidden_size": 1536, "intermediate_size": 512,
        "shared_intermediate_size": 1024, "num_hidden_layers": 6, "num_attention_heads": 24, "num_key_value_heads": 8,
        "vocab_size": 49152, "num_local_experts": 40, "num_experts_per_tok": 8, "max_position_embeddings": 4096,
        "embedding_multiplier": 12.0, "residual_multiplier": 0.22, "tie_word_embeddings": True,
    },
    "trinity mini of 6 layers and 32 experts": {
        "model_type": "afmoe", "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 1024,
        "num_hidden_layers": 6, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
        "vocab_size": 200192, "num_experts": 32, "num_experts_per_tok": 8, "num_shared_experts": 1,
        "num_dense_layers": 2, "sliding_window": 2048, "mup_enabled": True, "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
    },
    "flex olmo of 6 layers": {
        "model_type": "flex_olmo", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 6,
        "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 100352, "num_experts": 7,
        "num_experts_per_tok": 7, "max_position_embeddings": 4096, "tie_word_embeddings": False,
    },
    "cwm of 8 layers": {
        "model_type": "cwm", "hidden_size": 6144, "intermediate_size": 21504, "num_hidden_layers": 8,
        "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256,
        "sliding_window": 8192, "max_position_embeddings": 131072, "tie_word_embeddings": False,
    },
    "bitnet 2.4 B, tied": {
        "model_type": "bitnet", "hidden_size": 2560, "intermediate_size": 6912, "num_hidden_layers": 30,
        "num_attention_heads": 20, "num_key_value_heads": 5, "vocab_size": 128256, "max_position_embeddings": 4096,
        "tie_word_embeddings": True,
    },
    "glm 4.5 air of 4 layers and 16 experts": {
        "model_type": "glm4_moe", "hidden_size": 4096, "intermediate_size": 10944, "num_hidden_layers": 4,
        "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151552,
        "n_routed_experts": 16, "num_experts_per_tok": 8, "n_shared_experts": 1, "moe_intermediate_size": 1408,
        "first_k_dense_replace": 1, "attention_bias": True, "partial_rotary_factor": 0.5,
        "max_position_embeddings": 131072, "tie_word_embeddings": False,
    },
    "solar open of 4 layers and 32 experts": {
        "model_type": "solar_open", "hidden_size": 4096, "num_hidden_layers": 4, "num_attention_heads": 64,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 196608, "n_routed_experts": 32,
        "num_experts_per_tok": 8, "n_shared_experts": 1, "moe_intermediate_size": 1280,
        "max_position_embeddings": 131072, "tie_word_embeddings": False,
    },
    "youtu 2 B, tied": {
        "model_type": "youtu", "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 32,
        "num_attention_heads": 16, "vocab_size": 128256, "kv_lora_rank": 512, "q_lora_rank": 1536,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "max_position_embeddings": 131072,
        "tie_word_embeddings": True,
    },
    "hyperclova x of 8 layers": {
        "model_type": "hyperclovax", "hidden_size": 6144, "intermediate_size": 14336, "num_hidden_layers": 8,
        "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 110592,
        "embedding_multiplier": 10.0, "logits_scaling": 0.125, "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
    },
    "phi 3.5 moe 41.9 B": {
        "model_type": "phimoe", "hidden_size": 4096, "intermediate_size": 6400, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "num_local_experts": 16, "num_experts_per_tok": 2,
        "vocab_size": 32064, "max_position_embeddings": 131072, "sliding_window": 131072, "attention_bias": True,
        "lm_head_bias": True, "pad_token_id": 32000, "tie_word_embeddings": False,
    },
    "minicpm3 4 B, tied": {
        "model_type": "minicpm3", "hidden_size": 2560, "intermediate_size": 6400, "num_hidden_layers": 62,
        "num_attention_heads": 40, "num_key_value_heads": 40, "q_lora_rank": 768, "kv_lora_rank": 256,
        "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "v_head_dim": 64, "vocab_size": 73448,
        "max_position_embeddings": 32768, "tie_word_embeddings": True,
    },
    "apertus 8 B": {
        "model_type": "apertus", "hidden_size": 4096, "intermediate_size": 21504, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 131072, "max_position_embeddings": 65536,
        "hidden_act": "xielu", "pad_token_id": 3, "tie_word_embeddings": False,
    },
    "ernie 4.5 21.8 B, tied": {
        "model_type": "ernie4_5_moe", "hidden_size": 2560, "intermediate_size": 12288, "num_hidden_layers": 28,
        "num_attention_heads": 20, "num_key_value_heads": 4, "vocab_size": 103424, "moe_intermediate_size": 1536,
        "moe_num_experts": 64, "moe_k": 6, "moe_num_shared_experts": 2, "moe_layer_start_index": 1,
        "max_position_embeddings": 131072, "tie_word_embeddings": True,
    },
    "dots.llm1, 8 of 62 layers": {
        "model_type": "dots1", "hidden_size": 4096, "intermediate_size": 10944, "moe_intermediate_size": 1408,
        "num_hidden_layers": 8, "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 152064,
        "n_routed_experts": 128, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
        "n_group": 1, "topk_group": 1, "norm_topk_prob": True, "sliding_window": None,
        "max_position_embeddings": 32768, "tie_word_embeddings": False,
    },
    "hunyuan moe, 64 experts, 8 layers": {
        "model_type": "hunyuan_v1_moe", "hidden_size": 4096, "intermediate_size": 3072, "num_hidden_layers": 8,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128167,
        "num_experts": 64, "moe_topk": 8, "max_position_embeddings": 32768, "pad_token_id": 0,
        "tie_word_embeddings": False,
    },
    "gemma 3n E4B text 6.9 B, tied": {
        "model_type": "gemma3n_text", "hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 35,
        "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 262400,
        "sliding_window": 512, "hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 262144,
        "num_kv_shared_layers": 15, "laurel_rank": 64, "altup_num_inputs": 4, "final_logit_softcapping": 30.0,
        "layer_types": [*["sliding_attention"] * 4, "full_attention"] * 7, "max_position_embeddings": 32768,
        "tie_word_embeddings": True,
    },
    "gemma 4 E2B text 4.6 B, tied": {
        "model_type": "gemma4_text", "hidden_size": 1536, "intermediate_size": 6144, "num_hidden_layers": 35,
        "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256, "global_head_dim": 512,
        "vocab_size": 262144, "sliding_window": 512, "hidden_size_per_layer_input": 256,
        "vocab_size_per_layer_input": 262144, "num_kv_shared_layers": 20, "use_double_wide_mlp": True,
        "layer_types": [*["sliding_attention"] * 4, "full_attention"] * 7, "final_logit_softcapping": 30.0,
        "max_position_embeddings": 131072, "tie_word_embeddings": True,
    },
    "gemma 4 26 B text, tied": {
        "model_type": "gemma4_text", "hidden_size": 2816, "intermediate_size": 2112, "num_hidden_layers": 30,
        "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "global_head_dim": 512,
        "num_global_key_value_heads": 2, "attention_k_eq_v": True, "vocab_size": 262144, "sliding_window": 1024,
        "hidden_size_per_layer_input": 0, "enable_moe_block": True, "num_experts": 128, "top_k_experts": 8,
        "moe_intermediate_size": 704, "final_logit_softcapping": 30.0, "max_position_embeddings": 131072,
        "layer_types": [*["sliding_attention"] * 5, "full_attention"] * 5, "tie_word_embeddings": True,
    },
    "gemma 4 31 B text, tied": {
        "model_type": "gemma4_text", "hidden_size": 5376, "intermediate_size": 21504, "num_hidden_layers": 60,
        "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 256, "global_head_dim": 512,
        "num_global_key_value_heads": 4, "attention_k_eq_v": True, "vocab_size": 262144, "sliding_window": 1024,
        "hidden_size_per_layer_input": 0, "final_logit_softcapping": 30.0, "max_position_embeddings": 131072,
        "layer_types": [*["sliding_attention"] * 5, "full_attention"] * 10, "tie_word_embeddings": True,
    },
    "llama 4 scout 107.8 B": {
        "model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
        "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
        "vocab_size": 202048, "num_local_experts": 16, "num_experts_per_tok": 1, "interleave_moe_layer_step": 1,
        "attention_chunk_size": 8192, "max_position_embeddings": 10485760, "pad_token_id": 200018,
        "tie_word_embeddings": False,
    },
}  # fmt: skip

PRECISIONS: dict[str, dict[str, str]] = {
    "fp32": {"weights_dtype": "fp32", "mixed_precision": "no"},
    "fp32 + autocast": {"weights_dtype": "fp32", "mixed_precision": "bf16"},
    "bf16": {"weights_dtype": "bf16", "mixed_precision": "no"},
    "bf16 + autocast": {"weights_dtype": "bf16", "mixed_precision": "bf16"},
}

HELD = {"loop_outputs": "held", "use_cache": True}
"""A loop of the script's own, ``outputs = model(**batch)``, and the cache that is in them without checkpointing."""
DPO = {"trainer": "dpo", "reference_model": True}
KTO = {"trainer": "kto", "reference_model": True}
ORPO = {"trainer": "orpo"}
CPO = {"trainer": "cpo"}
REWARD = {"trainer": "reward"}
GRPO = {"trainer": "grpo", "generation": {"completion_len": 512}}
GA = {"gradient_accumulation_steps": 2}
PPO = {"trainer": "ppo", "reference_model": True}
ADAPTED = {**LORA, "reference_model": False}
"""Adapters, which are switched off for what the reference says: there is no second model."""
FOREACH = {"optimizer": "adamw_torch"}

CASES: tuple[tuple[str, str, int, int, dict[str, Any]], ...] = (
    ("llama 1.2 B, tied", "bf16", 4, 2048, {}),
    ("llama 1.2 B, tied", "fp32 + autocast", 2, 2048, GC),
    ("llama 1.2 B, tied", "bf16", 2, 1024, {"gradient_accumulation_steps": 2, **FOREACH}),
    ("llama 8 B", "bf16", 1, 4096, GC),
    ("llama 8 B", "bf16 + autocast", 2, 2048, {**LORA, **GC}),
    ("llama 8 B", "bf16", 1, 2048, EVERY),
    ("llama 8 B", "fp32", 1, 512, {"attention": "eager"}),
    ("llama 8 B", "bf16", 1, 4096, {**GC, "frozen_modules": ["model.embed_tokens", "model.layers[:24]"]}),
    ("qwen2 1.5 B, tied", "fp32 + autocast", 2, 2048, {"frozen_modules": ["*", "!model.layers[-4:]", "!model.norm"]}),
    ("llama 8 B, few words", "bf16 + autocast", 2, 1024, EVERY),
    ("llama 8 B, few words", "bf16 + autocast", 2, 1024, {**EVERY, **REENTRANT}),
    ("pythia 6.9 B, few words", "bf16 + autocast", 2, 1024, EVERY),
    ("pythia 6.9 B, few words", "bf16 + autocast", 2, 1024, {**EVERY, **GC}),
    ("command r7b, few words", "bf16 + autocast", 2, 1024, {**EVERY, **GC}),
    ("mistral 7 B", "bf16", 2, 2048, {**REENTRANT, **FOREACH}),
    ("mistral 7 B", "fp32 + autocast", 1, 1024, {}),
    ("mistral 7 B", "bf16 + autocast", 4, 4096, {**EVERY, **REENTRANT}),
    ("qwen2 1.5 B, tied", "fp32 + autocast", 4, 1024, FOREACH),
    ("qwen2 1.5 B, tied", "bf16 + autocast", 8, 1024, GC),
    ("qwen2 1.5 B, tied", "bf16", 2, 2048, LORA),
    ("qwen3 4 B, tied", "bf16", 2, 2048, {}),
    ("qwen3 4 B, tied", "fp32 + autocast", 1, 2048, GC),
    ("gemma2 2.6 B, tied", "bf16", 2, 1024, {"attention": "eager"}),
    ("gemma2 2.6 B, tied", "fp32 + autocast", 1, 1024, {"attention": "eager", **GC}),
    ("phi3 3.8 B", "bf16", 2, 2048, {}),
    ("phi3 3.8 B", "bf16 + autocast", 4, 2048, GC),
    ("gpt2 355 M, tied", "fp32", 8, 1024, {"attention": "eager"}),
    ("gpt2 355 M, tied", "fp32 + autocast", 8, 1024, {}),
    ("gpt2 355 M, tied", "bf16", 16, 1024, GC),
    ("mixtral 46.7 B", "bf16", 1, 2048, GC),
    ("mixtral 46.7 B", "bf16", 1, 1024, {"optimizer": "sgd"}),
    ("olmoe 6.9 B", "bf16", 2, 2048, {"optimizer": "sgd"}),
    ("deepseek v2 lite 15.7 B", "bf16", 2, 2048, {"optimizer": "sgd"}),
    ("deepseek v2 lite 15.7 B", "bf16", 4, 2048, {"optimizer": "sgd", **GC}),
    ("mixtral 46.7 B", "fp32 + autocast", 1, 1024, {"optimizer": "sgd", **GC}),
    ("mixtral 46.7 B", "bf16 + autocast", 2, 1024, EVERY),
    ("glm 4.7 flash 29.9 B", "bf16", 2, 2048, {"optimizer": "sgd", **GC}),
    ("gpt-oss 20.9 B", "bf16", 2, 1024, {"optimizer": "sgd", "attention": "eager"}),
    ("gpt-oss 20.9 B", "bf16 + autocast", 4, 1024, {**LORA, **REENTRANT, "attention": "eager"}),
    ("gpt-j 6.1 B", "fp32 + autocast", 4, 1024, {**EVERY, "attention": "eager"}),
    ("gpt-j 6.1 B", "bf16", 4, 1024, {**GC, "attention": "flash_attention_2"}),
    ("starcoder 15.5 B, tied", "bf16", 2, 2048, {**EVERY, **REENTRANT}),
    ("afm 4.6 B", "bf16", 2, 2048, {}),
    ("afm 4.6 B", "bf16 + autocast", 2, 2048, {**EVERY, **REENTRANT}),
    ("hunyuan 1.8 B, tied", "fp32 + autocast", 2, 2048, {}),
    ("hunyuan 1.8 B, tied", "bf16", 2, 2048, {**LORA, **GC}),
    ("granite moe 3.3 B, tied", "bf16", 2, 2048, {}),
    ("granite moe 3.3 B, tied", "bf16 + autocast", 2, 1024, EVERY),
    ("granite moe shared of 6 layers, tied", "bf16", 2, 2048, {}),
    ("granite moe shared of 6 layers, tied", "bf16 + autocast", 4, 1024, {**EVERY, **REENTRANT}),
    ("trinity mini of 6 layers and 32 experts", "bf16", 2, 4096, {**GC, "optimizer": "sgd"}),
    ("trinity mini of 6 layers and 32 experts", "bf16 + autocast", 2, 1024, {**EVERY, **REENTRANT}),
    ("flex olmo of 6 layers", "bf16", 2, 2048, {"optimizer": "sgd"}),
    ("flex olmo of 6 layers", "bf16 + autocast", 2, 1024, {**LORA, **GC}),
    ("cwm of 8 layers", "bf16", 1, 10000, {**GC, "optimizer": "sgd"}),
    ("cwm of 8 layers", "bf16", 2, 2048, EVERY),
    ("bitnet 2.4 B, tied", "bf16", 2, 2048, {}),
    ("bitnet 2.4 B, tied", "fp32 + autocast", 2, 2048, {**EVERY, **REENTRANT}),
    ("glm 4.5 air of 4 layers and 16 experts", "bf16 + autocast", 4, 1024, {**EVERY, **REENTRANT}),
    ("solar open of 4 layers and 32 experts", "bf16", 2, 2048, {"optimizer": "sgd", **GC}),
    ("solar open of 4 layers and 32 experts", "bf16 + autocast", 4, 1024, {**EVERY, **GC}),
    ("youtu 2 B, tied", "bf16", 2, 2048, GC),
    ("youtu 2 B, tied", "fp32 + autocast", 2, 1024, EVERY),
    ("hyperclova x of 8 layers", "bf16", 1, 2048, {}),
    ("hyperclova x of 8 layers", "bf16 + autocast", 2, 2048, {**LORA, **REENTRANT}),
    ("phi 3.5 moe 41.9 B", "bf16", 1, 2048, {"optimizer": "sgd"}),
    ("phi 3.5 moe 41.9 B", "bf16", 2, 2048, {**LORA, **GC}),
    ("minicpm3 4 B, tied", "bf16", 2, 1024, {}),
    ("minicpm3 4 B, tied", "fp32 + autocast", 2, 1024, {**EVERY, **GC}),
    ("apertus 8 B", "bf16", 2, 2048, {}),
    ("apertus 8 B", "bf16 + autocast", 2, 2048, {**EVERY, **GC}),
    ("ernie 4.5 21.8 B, tied", "bf16", 2, 2048, {"optimizer": "sgd", **GC}),
    ("ernie 4.5 21.8 B, tied", "bf16 + autocast", 2, 1024, LORA),
    ("dots.llm1, 8 of 62 layers", "bf16", 2, 2048, {"optimizer": "sgd"}),
    ("hunyuan moe, 64 experts, 8 layers", "bf16", 2, 2048, {"optimizer": "sgd"}),
    ("gemma 3n E4B text 6.9 B, tied", "bf16", 1, 1024, {}),
    ("gemma 3n E4B text 6.9 B, tied", "bf16", 2, 2048, {**LORA, **GC}),
    ("gemma 4 E2B text 4.6 B, tied", "bf16", 2, 2048, {}),
    ("gemma 4 E2B text 4.6 B, tied", "bf16 + autocast", 2, 2048, {**EVERY, **GC}),
    ("gemma 4 26 B text, tied", "bf16", 2, 2048, {**LORA, **GC}),
    ("gemma 4 31 B text, tied", "bf16 + autocast", 1, 2048, {**EVERY, **REENTRANT}),
    ("llama 4 scout 107.8 B", "bf16", 1, 2048, {"optimizer": "sgd", **GC}),
    ("llama 4 scout 107.8 B", "bf16", 1, 2048, LORA),
    ("llama 1.2 B, tied", "fp32 + autocast", 2, 2048, {**GC, **GA}),
    ("gemma2 2.6 B, tied", "bf16 + autocast", 1, 512, {"attention": "eager", **GC}),
    ("llama 1.2 B, tied", "bf16", 4, 2048, {**HELD, **GC}),
    ("qwen2 1.5 B, tied", "fp32 + autocast", 2, 2048, HELD),
    ("qwen2 1.5 B, tied", "fp32 + autocast", 2, 2048, {**HELD, "upcast_outputs": False}),
    ("llama 8 B", "bf16 + autocast", 2, 2048, {**HELD, **EVERY, **GC}),
    ("llama 8 B", "bf16", 2, 2048, {**HELD, **LORA}),
    ("gpt2 355 M, tied", "fp32", 4, 1024, HELD),
    ("llama 1.2 B, tied", "fp32 + autocast", 2, 2048, {**GC, "zero_grad": "backward"}),
    ("qwen3 4 B, tied", "bf16", 2, 2048, {"optimizer": "sgd", "zero_grad": "never"}),
    ("llama 1.2 B, tied", "bf16", 2, 1024, DPO),
    ("qwen2 1.5 B, tied", "fp32 + autocast", 1, 1024, {**DPO, **GC}),
    ("llama 8 B", "bf16 + autocast", 1, 2048, {**DPO, **ADAPTED, **GC}),
    ("gemma2 2.6 B, tied", "bf16", 1, 1024, {**DPO, **GC, "attention": "eager"}),
    ("llama 1.2 B, tied", "bf16", 4, 1024, KTO),
    ("qwen2 1.5 B, tied", "fp32 + autocast", 2, 1024, {**KTO, **GC}),
    ("llama 8 B", "bf16 + autocast", 2, 2048, {**KTO, **ADAPTED, **GC}),
    ("llama 1.2 B, tied", "bf16", 4, 1024, {**ORPO, "optimizer": "sgd"}),
    ("qwen2 1.5 B, tied", "fp32 + autocast", 2, 1024, {**ORPO, **GC}),
    ("llama 8 B", "bf16 + autocast", 2, 2048, {**ORPO, **LORA, **GC}),
    ("qwen2 1.5 B, tied", "bf16 + autocast", 1, 2048, {**ORPO, **EVERY, **GC}),
    ("mistral 7 B", "bf16", 1, 2048, {**CPO, **GC}),
    ("gpt2 355 M, tied", "fp32", 4, 1024, CPO),
    ("qwen3 4 B, tied", "bf16 + autocast", 2, 1024, {**CPO, **EVERY, **REENTRANT}),
    ("llama 1.2 B, tied", "bf16", 4, 2048, REWARD),
    ("llama 1.2 B, tied", "fp32 + autocast", 4, 1024, {"trainer": "classification"}),
    ("llama 8 B", "bf16 + autocast", 4, 1024, {"trainer": "classification", **EVERY, **GC}),
    ("qwen2 1.5 B, tied", "fp32 + autocast", 4, 1024, {**REWARD, **GC}),
    ("llama 8 B", "bf16 + autocast", 2, 2048, {**REWARD, **EVERY, **GC}),
    ("qwen3 4 B, tied", "bf16", 2, 2048, {**GRPO, **GC}),
    ("llama 1.2 B, tied", "fp32 + autocast", 4, 1024, GRPO),
    ("llama 1.2 B, tied", "bf16", 4, 256, {**PPO, "generation": {"completion_len": 32}}),
    ("llama 1.2 B, tied", "fp32", 2, 256, {**PPO, "generation": {"completion_len": 32}}),
    ("llama 1.2 B, tied", "fp32 + autocast", 2, 256, {**PPO, **GA, "generation": {"completion_len": 32}}),
    ("llama 1.2 B, tied", "bf16 + autocast", 4, 512, {**PPO, **ADAPTED, "generation": {"completion_len": 32}}),
)


def spec_of(config: dict[str, Any], precision: str, batch: int, seq: int, more: Mapping[str, Any]) -> dict[str, Any]:
    """lintfit's spec of a full fine-tuning with AdamW and SDPA, but for what ``more`` says."""
    return {
        "model_config": config,
        "gpu_memory_gib": 1000,
        **PRECISIONS[precision],
        "method": "full",
        "optimizer": "adamw_torch_fused",
        "micro_batch_size": batch,
        "seq_len": seq,
        "gradient_checkpointing": False,
        "attention": "sdpa",
        **more,
    }


def cases() -> Iterator[dict[str, Any]]:
    """Every case: its name and lintfit's spec of it."""
    models = MODELS | fake_hybrid_cases.MODELS | fake_vlm_cases.MODELS | fake_halves_cases.MODELS
    listed = (*CASES, *fake_hybrid_cases.CASES, *fake_vlm_cases.CASES, *fake_halves_cases.CASES)
    for model, precision, batch, seq, more in listed:
        spec = spec_of(models[model], precision, batch, seq, more)
        yield {"name": ", ".join([model, precision, f"{batch} × {seq}", *_words(more)]), "spec": spec}


def _words(more: dict[str, Any]) -> list[str]:
    words = [more["trainer"].upper()] if "trainer" in more else []
    if more.get("method") == "lora":
        words.append("LoRA on every linear layer" if more["lora_targets"] == "all-linear" else "LoRA on attention")
    words += [f"{more['decoder_seq_len']} decoded"] if "decoder_seq_len" in more else []
    words += ["padded"] if more.get("padded_batches") else []
    if more.get("gradient_checkpointing"):
        words.append("checkpointing, reentrant" if more["use_reentrant"] else "checkpointing")
    if "gradient_accumulation_steps" in more:
        words.append(f"accumulation {more['gradient_accumulation_steps']}")
    words += [f"outputs {more['loop_outputs']}"] if "loop_outputs" in more else []
    words += ["as autocast made them"] if not more.get("upcast_outputs", True) else []
    words += [f"zero_grad: {more['zero_grad']}"] if "zero_grad" in more else []
    if any("layers" in part or "*" in part for part in more.get("frozen_modules", ())):
        words.append("parts of the text frozen")
    if "images" in more:
        words.append(f"{more['images']} images" if more["images"] > 1 else "an image")
    return [*words, *(more[key] for key in ("attention", "optimizer") if more.get(key))]
