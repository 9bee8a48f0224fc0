"""Encoders, and encoders with a decoder."""

from __future__ import annotations

from typing import Any

from tests.catalog.small.sizes import SMALL

T5: dict[str, Any] = {"d_model": 64, "d_kv": 16, "d_ff": 100, "num_layers": 3, "num_heads": 4, "vocab_size": 1000}
BART: dict[str, Any] = {
    "d_model": 64,
    "encoder_layers": 3,
    "encoder_ffn_dim": 100,
    "encoder_attention_heads": 4,
    "decoder_layers": 2,
    "decoder_ffn_dim": 120,
    "decoder_attention_heads": 4,
    "vocab_size": 1000,
    "max_position_embeddings": 80,
    "pad_token_id": 0,
}
LED: dict[str, Any] = {
    **{key: value for key, value in BART.items() if key != "max_position_embeddings"},
    "max_encoder_position_embeddings": 96,
    "max_decoder_position_embeddings": 64,
    "attention_window": 16,
}
MODERNBERT: dict[str, Any] = {**SMALL, "num_hidden_layers": 4, "pad_token_id": 0}
DISTILBERT: dict[str, Any] = {"dim": 64, "hidden_dim": 176, "n_layers": 3, "n_heads": 4, "vocab_size": 1000}
DEBERTA: dict[str, Any] = {
    **SMALL,
    "relative_attention": True,
    "position_buckets": 24,
    "max_relative_positions": -1,
    "max_position_embeddings": 80,
    "pos_att_type": "p2c|c2p",
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "position_biased_input": False,
}

CASES: list[tuple[str, dict[str, Any]]] = [
    ("ernie", SMALL),
    ("ernie", {**SMALL, "use_task_id": True, "task_type_vocab_size": 5, "tie_word_embeddings": False}),
    ("distilbert", DISTILBERT),
    ("distilbert", {**DISTILBERT, "tie_word_embeddings": False}),
    ("t5", T5),
    (
        "t5",
        {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "num_decoder_layers": 2},
    ),
    ("mt5", {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    ("umt5", {**T5, "feed_forward_proj": "gated-gelu"}),
    ("bert", SMALL),
    ("bert", {**SMALL, "tie_word_embeddings": False}),
    ("albert", {**SMALL, "embedding_size": 32}),
    ("albert", {**SMALL, "embedding_size": 64, "num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2}),
    ("albert", {**SMALL, "embedding_size": 32, "tie_word_embeddings": False}),
    ("camembert", SMALL),
    ("data2vec-text", SMALL),
    ("data2vec-text", {**SMALL, "tie_word_embeddings": False}),
    ("deberta-v2", SMALL),
    ("deberta-v2", DEBERTA),
    ("deberta-v2", {**DEBERTA, "conv_kernel_size": 3, "attention_head_size": 8, "tie_word_embeddings": False}),
    ("deberta-v2", {**DEBERTA, "share_att_key": False, "position_buckets": -1, "type_vocab_size": 2}),
    ("deberta-v2", {**DEBERTA, "embedding_size": 32, "pos_att_type": ["c2p"], "share_att_key": False}),
    ("deberta-v2", {**DEBERTA, "legacy": False, "norm_rel_ebd": "none"}),
    ("electra", {**SMALL, "embedding_size": 32}),
    ("electra", {**SMALL, "embedding_size": 64, "tie_word_embeddings": False}),
    ("modernbert", MODERNBERT),
    ("modernbert", {**MODERNBERT, "norm_bias": True, "mlp_bias": True, "attention_bias": True, "decoder_bias": False}),
    ("modernbert", {**MODERNBERT, "classifier_bias": True, "tie_word_embeddings": False}),
    ("modernbert-decoder", MODERNBERT),
    ("modernbert-decoder", {**MODERNBERT, "norm_bias": True, "attention_bias": True, "tie_word_embeddings": False}),
    ("mpnet", SMALL),
    ("mpnet", {**SMALL, "tie_word_embeddings": False}),
    ("bart", BART),
    ("bart", {**BART, "tie_word_embeddings": False}),
    ("eurobert", {**SMALL, "num_key_value_heads": 2, "pad_token_id": 0}),
    ("eurobert", {**SMALL, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "pad_token_id": 0}),
    ("esm", {**SMALL, "position_embedding_type": "rotary", "token_dropout": True}),
    ("esm", {**SMALL, "emb_layer_norm_before": True, "tie_word_embeddings": False}),
    ("blenderbot", BART),
    ("blenderbot", {**BART, "tie_word_embeddings": False}),
    ("led", LED),
    ("led", {**LED, "tie_word_embeddings": False}),
    ("m2m_100", BART),
    ("m2m_100", {**BART, "tie_word_embeddings": False}),
    ("mbart", BART),
    ("pegasus", BART),
    ("marian", BART),
    ("marian", {**BART, "share_encoder_decoder_embeddings": False, "decoder_vocab_size": 900}),
    ("marian", {**BART, "share_encoder_decoder_embeddings": False, "tie_word_embeddings": False}),
    ("roberta", {**SMALL, "max_position_embeddings": 514, "type_vocab_size": 1}),
]
