"""What a small model with images is, and what such models have in common."""

from __future__ import annotations

from typing import Any, NamedTuple


class Seen(NamedTuple):
    """A model, what it is trained and evaluated on, and what torch counted.

    By ``bench.fake_tensors`` and ``bench.fake_evaluation`` on torch 2.13 and transformers 5.23. Sizes are small, and
    large enough for layers to decide.
    """

    config: dict[str, Any]
    batch: int
    """Sequences."""
    seq: int
    """Tokens of each."""
    beside: dict[str, Any]
    """Further keys of the spec: the images of a sequence."""
    steps: tuple[tuple[str, int, float], ...] = ()
    """How it is trained, the images of a sequence, and MiB of a whole step with SGD."""
    evaluations: tuple[tuple[str, int, float], ...] = ()
    """The same, of an evaluation on batches of the same size."""
    frozen: tuple[tuple[str, int, str, float], ...] = ()
    """Steps again; behind the images, what is frozen, as a spec's ``frozen_modules`` say it."""


TEXT: dict[str, Any] = {
    "hidden_size": 1024,
    "intermediate_size": 2048,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "pad_token_id": 0,
}
"""What the language models have in common."""
