"""GPT-2's names and numbers, which many decoders of its time have taken over."""

from __future__ import annotations

import functools

from lintfit.catalog.architectures._blocks import Shape, plain_shape
from lintfit.catalog.architectures._decoder import Names
from lintfit.catalog.config import Config
from lintfit.frozen import replace

KEYS = ("n_embd", "n_layer", "n_head", "vocab_size")

NAMES = Names(
    layer="transformer.h.{}",
    embedding="transformer.wte",
    positions="transformer.wpe",
    qkv=("attn.c_attn",),
    out="attn.c_proj",
    up=("mlp.c_fc",),
    down="mlp.c_proj",
    norms=("ln_1", "ln_2"),
    final="transformer.ln_f",
    order="norm mixer norm mlp",
)

numbers = functools.partial(
    plain_shape,
    hidden="n_embd",
    layers="n_layer",
    heads="n_head",
    intermediate="n_inner",
    times=4,
    activation="activation_function",
    positions=("n_positions", "n_ctx"),
)
"""The numbers of a config."""


def with_one_key_head(config: Config) -> Shape:
    """The numbers, with one key head for all of a query's where ``multi_query`` says so."""
    found = numbers(config)
    return replace(found, kv_heads=1) if config.flag("multi_query") else found


def of_mpt(config: Config) -> Shape:
    """MPT's: the MLP is as many times as wide as the stream as ``expansion_ratio`` says."""
    return plain_shape(
        config,
        hidden="d_model",
        layers="n_layers",
        heads="n_heads",
        intermediate="",
        times=config.size("expansion_ratio"),
        activation="",
        positions=("max_seq_len",),
        bounded=False,
    )
