"""GPT-NeoX and Megatron configs: one file with keys of their own beside DeepSpeed's."""

from __future__ import annotations

from collections.abc import Iterable

MEGATRON = frozenset(
    {
        "attention_config",
        "checkpoint_activations",
        "data_path",
        "hidden_size",
        "lr_decay_iters",
        "max_position_embeddings",
        "merge_file",
        "num_attention_heads",
        "num_layers",
        "pipe_parallel_size",
        "pos_emb",
        "rotary_pct",
        "seq_length",
        "train_iters",
        "vocab_file",
    }
)
"""Top-level keys that only GPT-NeoX and Megatron put beside DeepSpeed's own."""

HYPHENATED_KEYS = 3
"""From this many hyphenated top-level keys on, a file is a GPT-NeoX config (their own spelling of every key)."""


def is_megatron(keys: Iterable[str]) -> bool:
    """Whether top-level keys are those of a GPT-NeoX or Megatron config that merely contains DeepSpeed's."""
    names = set(keys)
    hyphenated = sum("-" in key for key in names)
    return hyphenated >= HYPHENATED_KEYS or len(names & MEGATRON) >= 2
