"""The cases of ``bench.fake_tensors`` whose layers mix their tokens in several ways, by the models' published sizes.

Those with experts have fewer of them, and fewer layers. Plain torch runs what flash-linear-attention, causal-conv1d and
mamba-ssm would: that is what transformers does where these are not installed.
"""

from __future__ import annotations

from typing import Any

from bench.fake_settings import EVERY, GC, LORA, REENTRANT

QWEN35 = {
    "model_type": "qwen3_5_text", "head_dim": 256, "vocab_size": 248320, "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16, "full_attention_interval": 4,
    "max_position_embeddings": 262144,
}  # fmt: skip
ROUTED = {"moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "num_experts": 64}

LFM2 = {
    "model_type": "lfm2", "num_hidden_layers": 16, "num_key_value_heads": 8, "vocab_size": 65536,
    "full_attn_idxs": [2, 5, 8, 10, 12, 14], "max_position_embeddings": 128000, "tie_word_embeddings": True,
}  # fmt: skip

GRANITE = {
    "model_type": "granitemoehybrid", "vocab_size": 100352, "tie_word_embeddings": True, "mamba_d_state": 128,
    "mamba_chunk_size": 256, "position_embedding_type": "nope", "num_local_experts": 0, "num_experts_per_tok": 0,
    "embedding_multiplier": 12, "logits_scaling": 8, "residual_multiplier": 0.22, "max_position_embeddings": 131072,
}  # fmt: skip
FALCON = {
    "model_type": "falcon_h1", "num_key_value_heads": 2, "mamba_chunk_size": 128, "mamba_norm_before_gate": False,
    "tie_word_embeddings": False, "max_position_embeddings": 16384,
}  # fmt: skip
NEMOTRON = {
    "model_type": "nemotron_h", "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 131072, "ssm_state_size": 128,
    "mamba_num_heads": 128, "n_groups": 8, "chunk_size": 128, "tie_word_embeddings": False,
}  # fmt: skip
NEMOTRON_EXPERTS = {"n_routed_experts": 32, "max_position_embeddings": 262144}


def _mamba(layers: int, *attending: int) -> list[str]:
    return ["attention" if index in attending else "mamba" for index in range(layers)]


MODELS: dict[str, dict[str, Any]] = {
    "qwen3.5 0.8 B, tied": {
        **QWEN35, "hidden_size": 1024, "intermediate_size": 3584, "num_hidden_layers": 24, "num_attention_heads": 8,
        "num_key_value_heads": 2, "linear_num_value_heads": 16, "tie_word_embeddings": True,
    },
    "qwen3.5 2 B, tied": {
        **QWEN35, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24, "num_attention_heads": 8,
        "num_key_value_heads": 2, "linear_num_value_heads": 16, "tie_word_embeddings": True,
    },
    "qwen3.5 4 B, tied": {
        **QWEN35, "hidden_size": 2560, "intermediate_size": 9216, "num_hidden_layers": 32, "num_attention_heads": 16,
        "num_key_value_heads": 4, "linear_num_value_heads": 32, "tie_word_embeddings": True,
    },
    "qwen3.5 9 B": {
        **QWEN35, "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 32, "num_attention_heads": 16,
        "num_key_value_heads": 4, "linear_num_value_heads": 32, "tie_word_embeddings": False,
    },
    "qwen3.5 a3b of 12 layers and 64 experts": {
        **QWEN35, **ROUTED, "model_type": "qwen3_5_moe_text", "hidden_size": 2048, "num_hidden_layers": 12,
        "num_attention_heads": 16, "num_key_value_heads": 2, "linear_num_value_heads": 32, "num_experts_per_tok": 8,
        "tie_word_embeddings": False,
    },
    "qwen3 next of 12 layers and 64 experts": {
        **QWEN35, **ROUTED, "model_type": "qwen3_next", "hidden_size": 2048, "intermediate_size": 5120,
        "num_hidden_layers": 12, "num_attention_heads": 16, "num_key_value_heads": 2, "linear_num_value_heads": 32,
        "num_experts_per_tok": 10, "vocab_size": 151936, "tie_word_embeddings": False,
    },
    "lfm2 350 M, tied": {**LFM2, "hidden_size": 1024, "intermediate_size": 6656, "num_attention_heads": 16},
    "lfm2 700 M, tied": {**LFM2, "hidden_size": 1536, "intermediate_size": 10240, "num_attention_heads": 24},
    "lfm2 1.2 B, tied": {**LFM2, "hidden_size": 2048, "intermediate_size": 12288, "num_attention_heads": 32},
    "lfm2 8 B a1b of 8 layers and 16 experts, tied": {
        "model_type": "lfm2_moe", "hidden_size": 2048, "intermediate_size": 7168, "moe_intermediate_size": 1792,
        "num_hidden_layers": 8, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 65536,
        "num_experts": 16, "num_experts_per_tok": 4, "num_dense_layers": 2, "max_position_embeddings": 128000,
        "layer_types": ["conv", "conv", "full_attention", "conv", "conv", "conv", "full_attention", "conv"],
        "tie_word_embeddings": True,
    },
    "granite 4 h 350 M, tied": {
        **GRANITE, "hidden_size": 768, "shared_intermediate_size": 2048, "num_hidden_layers": 32,
        "num_attention_heads": 12, "num_key_value_heads": 4, "mamba_n_heads": 48,
        "layer_types": _mamba(32, 10, 13, 17, 27),
    },
    "granite 4 h micro 3.2 B, tied": {
        **GRANITE, "hidden_size": 2048, "shared_intermediate_size": 8192, "num_hidden_layers": 40,
        "num_attention_heads": 32, "num_key_value_heads": 8, "mamba_n_heads": 64,
        "layer_types": _mamba(40, 5, 15, 25, 35),
    },
    "granite 4 h tiny of 12 layers, tied": {
        **GRANITE, "hidden_size": 1536, "intermediate_size": 512, "shared_intermediate_size": 1024,
        "num_hidden_layers": 12, "num_attention_heads": 12, "num_key_value_heads": 4, "mamba_n_heads": 48,
        "num_local_experts": 64, "num_experts_per_tok": 6, "layer_types": _mamba(12, 5),
    },
    "bamba 9 B of 8 layers": {
        "model_type": "bamba", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 8,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "mamba_n_heads": 128,
        "mamba_d_state": 128, "attn_layer_indices": [3], "max_position_embeddings": 262144,
        "tie_word_embeddings": False,
    },
    "falcon h1 0.5 B": {
        **FALCON, "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 36, "num_attention_heads": 8,
        "head_dim": 64, "vocab_size": 32784, "mamba_n_heads": 24, "mamba_d_head": 64, "mamba_d_ssm": 1536,
        "mamba_d_state": 128, "mamba_rms_norm": False,
    },
    "falcon h1 1.5 B": {
        **FALCON, "hidden_size": 2048, "intermediate_size": 4608, "num_hidden_layers": 24, "num_attention_heads": 8,
        "head_dim": 128, "vocab_size": 65536, "mamba_n_heads": 48, "mamba_d_head": 64, "mamba_d_ssm": 3072,
        "mamba_d_state": 256, "mamba_rms_norm": True,
    },
    "nemotron h 8 B": {
        **NEMOTRON, "hidden_size": 4096, "intermediate_size": 21504, "num_attention_heads": 32, "mamba_head_dim": 64,
        "num_hidden_layers": 52, "max_position_embeddings": 8192,
        "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
    },
    "nemotron nano 2 9 B": {
        **NEMOTRON, "hidden_size": 4480, "intermediate_size": 15680, "num_attention_heads": 40, "mamba_head_dim": 80,
        "num_hidden_layers": 56, "max_position_embeddings": 131072,
        "hybrid_override_pattern": "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-",
    },
    "nemotron 3 nano of 12 layers and 32 experts": {
        **NEMOTRON, "hidden_size": 2688, "intermediate_size": 1856, "num_attention_heads": 32, "num_key_value_heads": 2,
        "mamba_num_heads": 64, "mamba_head_dim": 64, "hybrid_override_pattern": "MEMEM*EMEMEM", **NEMOTRON_EXPERTS,
        "num_experts_per_tok": 6, "moe_intermediate_size": 1856, "moe_shared_expert_intermediate_size": 3712,
    },
    "nemotron 3 super of 9 layers and 32 experts": {
        **NEMOTRON, "hidden_size": 4096, "intermediate_size": 2688, "num_attention_heads": 32, "num_key_value_heads": 2,
        "mamba_head_dim": 64, "hybrid_override_pattern": "MEMEMEM*E", **NEMOTRON_EXPERTS, "moe_latent_size": 1024,
        "num_experts_per_tok": 22, "moe_intermediate_size": 2688, "moe_shared_expert_intermediate_size": 5376,
    },
    "granite 4 micro 3.4 B, tied": {
        **GRANITE, "hidden_size": 2560, "shared_intermediate_size": 8192, "num_hidden_layers": 40,
        "num_attention_heads": 40, "num_key_value_heads": 8, "position_embedding_type": "rope",
        "layer_types": ["attention"] * 40,
    },
}  # fmt: skip

SGD = {"optimizer": "sgd"}

CASES: tuple[tuple[str, str, int, int, dict[str, Any]], ...] = (
    ("qwen3.5 0.8 B, tied", "bf16", 4, 1024, GC),
    ("qwen3.5 0.8 B, tied", "bf16", 1, 2000, {}),
    ("qwen3.5 0.8 B, tied", "fp32 + autocast", 2, 512, GC),
    ("qwen3.5 0.8 B, tied", "fp32", 1, 512, SGD),
    ("qwen3.5 0.8 B, tied", "bf16", 1, 512, {"attention": "eager"}),
    ("qwen3.5 2 B, tied", "bf16", 2, 1000, GC),
    ("qwen3.5 2 B, tied", "bf16 + autocast", 2, 512, EVERY),
    ("qwen3.5 4 B, tied", "bf16", 1, 1024, {**GC, **SGD}),
    ("qwen3.5 4 B, tied", "bf16 + autocast", 2, 500, {**EVERY, **GC}),
    ("qwen3.5 4 B, tied", "bf16", 2, 512, LORA),
    ("qwen3.5 9 B", "bf16", 2, 300, GC),
    ("qwen3.5 9 B", "bf16 + autocast", 4, 256, {**EVERY, **REENTRANT}),
    ("qwen3.5 a3b of 12 layers and 64 experts", "bf16", 2, 512, SGD),
    ("qwen3.5 a3b of 12 layers and 64 experts", "fp32 + autocast", 1, 640, {**GC, **SGD}),
    ("qwen3.5 a3b of 12 layers and 64 experts", "bf16 + autocast", 2, 500, {**LORA, **GC}),
    ("qwen3 next of 12 layers and 64 experts", "bf16", 2, 512, {**GC, **SGD}),
    ("qwen3 next of 12 layers and 64 experts", "bf16", 1, 500, SGD),
    ("qwen3 next of 12 layers and 64 experts", "bf16 + autocast", 1, 300, {**EVERY, **GC}),
    ("lfm2 350 M, tied", "bf16", 8, 1024, {}),
    ("lfm2 350 M, tied", "fp32", 2, 1000, GC),
    ("lfm2 700 M, tied", "bf16", 2, 2048, LORA),
    ("lfm2 1.2 B, tied", "fp32 + autocast", 2, 2048, GC),
    ("lfm2 1.2 B, tied", "bf16 + autocast", 4, 1000, {**EVERY, **REENTRANT}),
    ("lfm2 1.2 B, tied", "bf16", 1, 4096, EVERY),
    ("lfm2 8 B a1b of 8 layers and 16 experts, tied", "bf16", 2, 2048, SGD),
    ("lfm2 8 B a1b of 8 layers and 16 experts, tied", "bf16 + autocast", 4, 1000, {**EVERY, **REENTRANT}),
    ("granite 4 h 350 M, tied", "bf16", 4, 1000, {}),
    ("granite 4 h 350 M, tied", "fp32 + autocast", 4, 2048, GC),
    ("granite 4 h micro 3.2 B, tied", "bf16", 2, 2048, GC),
    ("granite 4 h micro 3.2 B, tied", "bf16 + autocast", 4, 1000, {**EVERY, **GC}),
    ("granite 4 h micro 3.2 B, tied", "bf16 + autocast", 1, 1024, EVERY),
    ("granite 4 h tiny of 12 layers, tied", "bf16", 2, 1024, SGD),
    ("granite 4 h tiny of 12 layers, tied", "bf16 + autocast", 2, 1000, {**LORA, **REENTRANT}),
    ("granite 4 h tiny of 12 layers, tied", "fp32 + autocast", 1, 2048, {**GC, **SGD}),
    ("granite 4 micro 3.4 B, tied", "bf16", 2, 2048, GC),
    ("granite 4 micro 3.4 B, tied", "bf16 + autocast", 2, 1024, EVERY),
    ("bamba 9 B of 8 layers", "bf16", 1, 2048, SGD),
    ("bamba 9 B of 8 layers", "bf16 + autocast", 2, 1000, {**EVERY, **GC}),
    ("falcon h1 0.5 B", "bf16", 2, 1000, {}),
    ("falcon h1 0.5 B", "fp32 + autocast", 2, 1024, GC),
    ("falcon h1 1.5 B", "bf16", 2, 2048, GC),
    ("falcon h1 1.5 B", "bf16 + autocast", 2, 1000, {**LORA, **REENTRANT}),
    ("falcon h1 1.5 B", "bf16 + autocast", 1, 1024, LORA),
    ("nemotron h 8 B", "bf16", 2, 1000, {**GC, **SGD}),
    ("nemotron h 8 B", "bf16", 1, 1024, LORA),
    ("nemotron nano 2 9 B", "bf16 + autocast", 2, 1024, {**LORA, **GC}),
    ("nemotron nano 2 9 B", "bf16 + autocast", 1, 700, {**LORA, **REENTRANT}),
    ("nemotron 3 nano of 12 layers and 32 experts", "bf16", 1, 1024, SGD),
    ("nemotron 3 nano of 12 layers and 32 experts", "fp32 + autocast", 1, 1000, {**GC, **SGD}),
    ("nemotron 3 nano of 12 layers and 32 experts", "bf16 + autocast", 2, 1024, {**LORA, **GC}),
    ("nemotron 3 super of 9 layers and 32 experts", "bf16", 2, 1024, {**GC, **SGD}),
    ("nemotron 3 super of 9 layers and 32 experts", "bf16 + autocast", 1, 1024, LORA),
)
