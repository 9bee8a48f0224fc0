"""Models of an encoder and a decoder for ``bench.fake_tensors``, and what is run of them."""

from __future__ import annotations

from typing import Any

from bench.fake_settings import EVERY, GC, LORA, REENTRANT

MODELS: dict[str, dict[str, Any]] = {
    "flan-t5 2.8 B": {
        "model_type": "t5", "d_model": 2048, "d_kv": 64, "d_ff": 5120, "num_layers": 24, "num_decoder_layers": 24,
        "num_heads": 32, "vocab_size": 32128, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False,
        "decoder_start_token_id": 0,
    },
    "t5 220 M": {
        "model_type": "t5", "d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_decoder_layers": 12,
        "num_heads": 12, "vocab_size": 32128, "feed_forward_proj": "relu", "decoder_start_token_id": 0,
    },
    "mt5 580 M": {
        "model_type": "mt5", "d_model": 768, "d_kv": 64, "d_ff": 2048, "num_layers": 12, "num_decoder_layers": 12,
        "num_heads": 12, "vocab_size": 250112, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False,
        "decoder_start_token_id": 0,
    },
}  # fmt: skip
"""google/flan-t5-xl, google-t5/t5-base, google/mt5-base."""

SHORT = {"decoder_seq_len": 128}
FEW = {**LORA, "lora_targets": ["q", "v"], "lora_dtype": "fp32"}

CASES: tuple[tuple[str, str, int, int, dict[str, Any]], ...] = (
    ("flan-t5 2.8 B", "bf16", 4, 512, {}),
    ("flan-t5 2.8 B", "bf16", 8, 512, {**SHORT, **GC}),
    ("flan-t5 2.8 B", "fp32 + autocast", 4, 512, SHORT),
    ("flan-t5 2.8 B", "bf16", 4, 512, {**SHORT, "attention": "eager"}),
    ("flan-t5 2.8 B", "bf16 + autocast", 8, 512, {**SHORT, **FEW}),
    ("flan-t5 2.8 B", "bf16 + autocast", 8, 1024, {**SHORT, **FEW, **REENTRANT}),
    ("t5 220 M", "fp32", 16, 512, SHORT),
    ("t5 220 M", "fp32 + autocast", 16, 512, {**SHORT, "padded_batches": True}),
    ("t5 220 M", "bf16 + autocast", 8, 1024, {**EVERY, **GC, "lora_dtype": "fp32"}),
    ("mt5 580 M", "fp32", 4, 512, {}),
    ("mt5 580 M", "fp32", 2, 128, GC),
    ("mt5 580 M", "bf16", 16, 512, {**SHORT, **GC}),
)
