"""What a ``config.json`` may say where the memory model reads a key as it stands: kinds of values, by key.

Architectures check the numbers that they build tensors from. What only changes what a layer saves (an activation, a
dropout, a window) is read later, wherever it matters, and must be in order by then.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lintfit.catalog.config import LARGEST, Config

PARTS = (
    "text_config",
    "llm_config",
    "language_config",
    "language_model_config",
    "vision_config",
    "perceiver_config",
)
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


Check = Callable[[Any], bool]
KINDS: tuple[tuple[str, Check, str], ...] = (
    (r"(\w+_)?(dropout|pdrop|dropout_rate|rotary_pct)", _is_share, "a number from 0 to 1"),
    (
        "tie_word_embeddings|use_cache|use_parallel_residual|do_layer_norm_before|new_decoder_architecture|parallel_attn"
        "|use_sliding_window|use_qk_norm|qk_normalization|no_bias|attention_bias|mlp_bias|use_bias|multi_query|alibi"
        "|scale_embedding",
        _is_flag,
        "true or false",
    ),
    (
        "hidden_act|hidden_activation|activation_function|norm_type|feed_forward_proj|torch_dtype|dtype|model_type",
        _is_text,
        "a string",
    ),
    (
        "window_size|decoder_sparse_step|moe_layer_freq|first_k_dense_replace|word_embed_proj_dim|spatial_merge_size"
        "|num_ln_in_parallel_attn",
        _is_count,
        f"a whole number from 0 to {LARGEST['other']}",
    ),
    (
        "partial_rotary_factor|attn_logit_softcapping|final_logit_softcapping|query_pre_attn_scalar",
        _is_number,
        f"a number from 0 to {LARGEST['other']}",
    ),
    (
        "fullatt_block_indexes|deepstack_visual_indexes|mlp_only_layers|intermediate_layers_indices"
        "|cross_attention_layers",
        _are_counts,
        "a list of whole numbers",
    ),
)
"""Patterns of keys, what their values must be, and the words for it; ``null`` may always stand."""

_PATTERNS: tuple[tuple[re.Pattern[str], Check, str], ...] = tuple(
    (re.compile(pattern), check, words) for pattern, check, words in KINDS
)


def check(config: Config) -> None:
    """Raise :class:`~.config.CatalogError` for the first value of a wrong kind, in the config or a part of it."""
    for part in (config, *_parts(config)):
        for key, value in part.items():
            for pattern, fine, words in _PATTERNS:
                if value is not None and pattern.fullmatch(str(key)) and not fine(value):
                    raise part.error(key, f"must be {words}")


def _parts(config: Config) -> Iterator[Config]:
    for key in PARTS:
        part = config.get(key)
        if isinstance(part, Mapping):
            yield Config(part, {}, f"{config.origin}: {key}")
