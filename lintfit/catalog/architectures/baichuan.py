"""Baichuan 7B, 13B and 2, by the code in their repositories."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._decoder import Names
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Code
from lintfit.frozen import replace

ALIBI_FROM_HIDDEN = 5120
"""The 13B models have ALiBi, the 7B models rotary embedding (``modeling_baichuan.py`` of either)."""


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config)
    positions = config.count("max_position_embeddings", "model_max_length", kind="positions") or None
    rotary = 0 if numbers.hidden >= ALIBI_FROM_HIDDEN else numbers.head_dim
    return replace(numbers, max_positions=positions, rotary_dim=rotary)


ROW = Plain(
    "One projection for query, key and value",
    own={"vocab_size": 64000, "max_position_embeddings": 4096},  # configuration_baichuan.py
    like="llama",
    numbers=shape,
    names=Names(qkv=("self_attn.W_pack",)),
    bias=False,
    code=Code(chooses_kernel=False),
)
