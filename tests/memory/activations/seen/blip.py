"""BLIP-2."""

from __future__ import annotations

from tests.memory.activations.seen.common import Seen

MODELS: dict[str, Seen] = {
    "blip-2": Seen(
        {
            "model_type": "blip-2",
            "num_query_tokens": 32,
            "image_token_index": 5,
            "vision_config": {
                "hidden_size": 512,
                "intermediate_size": 1024,
                "num_hidden_layers": 3,
                "num_attention_heads": 8,
                "image_size": 448,
                "patch_size": 14,
            },
            "qformer_config": {
                "hidden_size": 256,
                "num_hidden_layers": 3,
                "num_attention_heads": 4,
                "intermediate_size": 512,
            },
            "text_config": {
                "model_type": "opt",
                "hidden_size": 1024,
                "ffn_dim": 2048,
                "num_hidden_layers": 3,
                "num_attention_heads": 8,
                "vocab_size": 1000,
                "max_position_embeddings": 4096,
                "word_embed_proj_dim": 1024,
            },
        },
        4,
        1024,
        {},
        steps=(
            ("bf16", 1, 582.41),
            ("bf16", 2, 760.31),
            ("autocast", 1, 888.25),
            ("fp32", 1, 1081.95),
            ("eager", 1, 1455.75),
            ("checkpointed", 1, 273.08),
            ("checkpointed", 2, 307.2),
            ("autocast, checkpointed", 1, 461.04),
            ("reentrant", 1, 281.08),
            ("adapters on queries", 1, 479.18),
            ("adapters", 1, 831.6),
            ("adapters", 2, 1060.29),
            ("adapters, checkpointed", 1, 360.66),
            ("adapters, reentrant", 1, 360.66),
        ),
        frozen=(
            ("autocast", 1, "vision_model", 694.28),
            ("checkpointed", 1, "vision_model", 252.44),
            ("bf16", 1, "vision_model", 429.07),
        ),
    ),
}
