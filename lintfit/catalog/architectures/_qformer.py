"""What BLIP-2's line has in front of its language model: an image encoder, and queries that attend to its patches."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from lintfit.catalog.architectures._blocks import linear, norm
from lintfit.catalog.architectures._multimodal import Multimodal, Parts, Text, part
from lintfit.catalog.architectures._towers import Layer, Own, layers, patches, patches_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor, VisionTower
from lintfit.frozen import replace

VISION = defaults("blip_2.vision_config", num_channels=3)  # BLIP-2's class does not name it
QUERIES = defaults("blip_2.qformer_config")
"""``Blip2VisionConfig``, ``Blip2QFormerConfig`` and their copies."""
LAYER = Layer(inputs=("qkv",), out="projection")


def _seen(parts: Parts) -> VisionTower:
    return replace(parts.tower, tokens=parts.config.size("num_query_tokens"))


def _beside(parts: Parts, *, reads: bool) -> list[Tensor]:
    """``reads``: whether the queries stand beside the instruction's words, which have a table and MLPs of their own."""
    queries = part(parts.config, "qformer_config", QUERIES)
    width = queries.size("hidden_size", kind="hidden")
    if width % queries.size("num_attention_heads", kind="heads"):
        raise queries.error("num_attention_heads", f"must divide hidden_size ({width})")
    return [
        Tensor("query_tokens", (1, parts.config.size("num_query_tokens"), width), 1, "other"),
        *_queries(queries, width, parts.tower.hidden, reads=reads or queries.flag("use_qformer_text_input")),
        *_words(queries, width, reads=reads),
        *linear("language_projection", parts.hidden, width, bias=True),
    ]


def _encoder(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    width, place = tower.hidden, f"{name}.embeddings"
    return [
        Tensor(f"{place}.class_embedding", (1, 1, width), 1, "other"),
        Tensor(f"{place}.position_embedding", (1, patches_of(tower) + 1, width), 1, "embedding"),
        *patches(f"{place}.patch_embedding", vision),
        *layers(tower, f"{name}.encoder.layers.{{}}", LAYER, qkv_bias=vision.flag("qkv_bias")),
        *norm(f"{name}.post_layernorm", width, bias=True),
    ]


def _queries(queries: Config, width: int, seen: int, *, reads: bool) -> list[Tensor]:
    """The layers of queries; of some of these they attend to the encoder's patches, which are ``seen`` wide."""
    layers, layer = queries.size("num_hidden_layers", kind="layers"), "qformer.encoder.layer.{}"
    crossing = -(-layers // queries.size("cross_attention_frequency"))
    inner = queries.size("intermediate_size", kind="intermediate")
    found: list[Tensor] = []
    for name, copies, taken in (("attention", layers, width), ("crossattention", crossing, seen)):
        place = f"{layer}.{name}"
        found += linear(f"{place}.attention.query", width, width, copies, bias=True)
        found += linear(f"{place}.attention.key", width, taken, copies, bias=True)
        found += linear(f"{place}.attention.value", width, taken, copies, bias=True)
        found += linear(f"{place}.output.dense", width, width, copies, bias=True)
        found += norm(f"{place}.output.LayerNorm", width, copies, bias=True)
    for suffix in ("", "_query") if reads else ("_query",):
        found += linear(f"{layer}.intermediate{suffix}.dense", inner, width, layers, bias=True)
        found += linear(f"{layer}.output{suffix}.dense", width, inner, layers, bias=True)
        found += norm(f"{layer}.output{suffix}.LayerNorm", width, layers, bias=True)
    return found


def _words(queries: Config, width: int, *, reads: bool) -> list[Tensor]:
    """The norm in front of the layers, and the tables of words and positions."""
    if not reads:
        return norm("qformer.layernorm", width, bias=True)
    words, positions = queries.size("vocab_size", kind="vocab"), queries.size("max_position_embeddings")
    return [
        Tensor("qformer.embeddings.word_embeddings.weight", (words, width), 1, "embedding"),
        Tensor("qformer.embeddings.position_embeddings.weight", (positions, width), 1, "embedding"),
        *norm("qformer.embeddings.layernorm", width, bias=True),
    ]


BLIP_2 = Multimodal(
    "BLIP-2: an image encoder, queries that attend to its patches, and OPT or Flan-T5",
    text=Text("opt", free=True, tied=None),
    vision=Own(VISION, _encoder),
    encoders=("vision_model",),
    prefix="language_model.",
    whole=True,
    seen=_seen,
    beside=functools.partial(_beside, reads=False),
    code=Code(flash_attention_2=NEVER),
)
ROWS: Mapping[str, Multimodal] = {
    "blip_2": BLIP_2,
    "instructblip": replace(
        BLIP_2,
        about="InstructBLIP: BLIP-2 whose queries stand beside the instruction, and Vicuna or Flan-T5",
        beside=functools.partial(_beside, reads=True),
        code=Code(),
    ),
}
