"""What BLIP-2's line has in front of its language model: an image encoder, and queries that attend to its patches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog import architectures
from lintfit.catalog.architectures._architecture import Architecture
from lintfit.catalog.architectures._blocks import Shape, linear, norm, plain_mlp
from lintfit.catalog.architectures._multimodal import part, patches, tower_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.errors import shown
from lintfit.frozen import replace

REQUIRED = ("text_config",)
DEFAULTS: Mapping[str, Any] = {"num_query_tokens": 32}
VISION = defaults("blip_2.vision_config", num_channels=3)  # BLIP-2's class does not name it
QUERIES = defaults("blip_2.qformer_config")
"""``Blip2VisionConfig``, ``Blip2QFormerConfig`` and their copies."""


def text_of(config: Config) -> tuple[Architecture, Config]:
    """The language model's model and config."""
    model_type = str(config.section("text_config").get("model_type") or "opt")
    model = architectures.find(model_type)
    if model is None or model.language is not None:
        raise config.error("text_config", f"model_type {shown(model_type)} must be a language model that lintfit knows")
    return model, part(config, "text_config", model.defaults)


def language(config: Config) -> tuple[str, Config]:
    model, text = text_of(config)
    return model.name, text


def shape(config: Config) -> Shape:
    model, text = text_of(config)
    numbers: Shape = model.shape(text)
    tower = tower_of(part(config, "vision_config", VISION), config.size("num_query_tokens"))
    return replace(numbers, vision=tower)


def tensors(config: Config, *, reads: bool) -> tuple[Tensor, ...]:
    """``reads``: whether the queries stand beside the instruction's words, which have a table and MLPs of their own."""
    model, text = text_of(config)
    queries = part(config, "qformer_config", QUERIES)
    width = queries.size("hidden_size", kind="hidden")
    if width % queries.size("num_attention_heads", kind="heads"):
        raise queries.error("num_attention_heads", f"must divide hidden_size ({width})")
    found = [
        *_encoder(part(config, "vision_config", VISION)),
        Tensor("query_tokens", (1, config.size("num_query_tokens"), width), 1, "other"),
        *_queries(queries, width, shape(config), reads=reads or queries.flag("use_qformer_text_input")),
        *_words(queries, width, reads=reads),
        *linear("language_projection", model.shape(text).hidden, width, bias=True),
    ]
    spoken = [replace(tensor, name=f"language_model.{tensor.name}") for tensor in model.tensors(text)]
    return (*(replace(tensor, where="vision") for tensor in found), *spoken)


def _encoder(vision: Config) -> list[Tensor]:
    tower, name = tower_of(vision), "vision_model"
    width, layers, layer = tower.hidden, tower.layers, f"{name}.encoder.layers.{{}}"
    positions = ((tower.image_size or 0) // tower.patch) ** 2 + 1
    return [
        Tensor(f"{name}.embeddings.class_embedding", (1, 1, width), 1, "other"),
        Tensor(f"{name}.embeddings.position_embedding", (1, positions, width), 1, "embedding"),
        *patches(f"{name}.embeddings.patch_embedding", vision, bias=True),
        *linear(f"{layer}.self_attn.qkv", 3 * width, width, layers, bias=vision.flag("qkv_bias")),
        *linear(f"{layer}.self_attn.projection", width, width, layers, bias=True),
        *norm(f"{layer}.layer_norm1", width, layers, bias=True),
        *norm(f"{layer}.layer_norm2", width, layers, bias=True),
        *plain_mlp(f"{layer}.mlp", width, tower.intermediate, layers, up="fc1", down="fc2"),
        *norm(f"{name}.post_layernorm", width, bias=True),
    ]


def _queries(queries: Config, width: int, numbers: Shape, *, reads: bool) -> list[Tensor]:
    """The layers of queries; of some of these they attend to the encoder's patches."""
    layers, layer = queries.size("num_hidden_layers", kind="layers"), "qformer.encoder.layer.{}"
    assert numbers.vision is not None
    crossing = -(-layers // queries.size("cross_attention_frequency"))
    inner = queries.size("intermediate_size", kind="intermediate")
    found: list[Tensor] = []
    for name, copies, taken in (("attention", layers, width), ("crossattention", crossing, numbers.vision.hidden)):
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
