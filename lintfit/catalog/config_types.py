"""What a ``config.json`` may say where the memory model reads a key as it stands: kinds of values, by key.

Architectures check the numbers that they build tensors from. What only changes what a layer saves (an activation, a
dropout, a window) is read later, wherever it matters, and must be in order by then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lintfit.catalog.config import LARGEST, Config
from lintfit.documents.patterns import lazy_pattern

TEXT_PARTS = ("text_config", "llm_config", "language_config", "language_model_config")
"""What multimodal models call the config of their language model."""

PARTS = (*TEXT_PARTS, "vision_config", "perceiver_config")
"""Sections of a config that are configs themselves."""


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 <= value <= LARGEST["other"]
        and math.isfinite(value)
    )


def _is_count(value: Any) -> bool:
    return _is_number(value) and value == int(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_counts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(_is_count(item) for item in value)


def _are_shares(value: Any) -> bool:
    return _is_share(value) or (isinstance(value, list | tuple) and all(_is_share(item) for item in value))


Check = Callable[[Any], bool]
_RATE = lazy_pattern(r"(\w+_)?(dropout|dropout_prob|pdrop|dropout_rate|rotary_pct)")
_RATES: tuple[Check, str] = (_is_share, "a number from 0 to 1")
_KINDS: tuple[tuple[str, Check, str], ...] = (
    (
        """
        alibi attention_bias do_layer_norm_before mlp_bias multi_query new_decoder_architecture no_bias parallel_attn
        qk_normalization scale_embedding tie_word_embeddings token_dropout use_bias use_cache use_parallel_residual
        use_qk_norm use_sliding_window
        """,
        _is_flag,
        "true or false",
    ),
    (
        """
        activation_function dtype feed_forward_proj hidden_act hidden_activation mlp_hidden_act model_type norm_type
        torch_dtype
        """,
        _is_text,
        "a string",
    ),
    (
        """
        decoder_sparse_step first_k_dense_replace moe_layer_freq no_rope_layer_interval num_ln_in_parallel_attn
        spatial_merge_size window_size word_embed_proj_dim
        """,
        _is_count,
        f"a whole number from 0 to {LARGEST['other']}",
    ),
    (
        """
        attn_logit_softcapping block_ffn_dim_multiplier final_logit_softcapping partial_rotary_factor
        query_pre_attn_scalar
        """,
        _is_number,
        f"a number from 0 to {LARGEST['other']}",
    ),
    (
        """
        cross_attention_layers deepstack_visual_indexes fullatt_block_indexes intermediate_layers_indices
        mlp_only_layers
        """,
        _are_counts,
        "a list of whole numbers",
    ),
    ("activation_sparsity_pattern", _are_shares, "a number from 0 to 1, or a list of these"),
)
"""Keys, what their values must be, and the words for it; ``null`` may always stand."""

_BY_KEY: dict[str, tuple[Check, str]] = {key: (kind, words) for keys, kind, words in _KINDS for key in keys.split()}


def check(config: Config) -> None:
    """Raise :class:`~.config.CatalogError` for the first value of a wrong kind, in the config or a part of it."""
    for part in (config, *_parts(config)):
        for key, value in part.items():
            kind = _BY_KEY.get(key) or (_RATES if _RATE.fullmatch(str(key)) else None)
            if kind is not None and value is not None and not kind[0](value):
                raise part.error(key, f"must be {kind[1]}")


def _parts(config: Config) -> Iterator[Config]:
    for key in PARTS:
        part = config.get(key)
        if isinstance(part, Mapping):
            yield Config(part, {}, f"{config.origin}: {key}")
