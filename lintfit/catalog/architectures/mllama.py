"""Llama 3.2 Vision: a two-stage image encoder, and cross-attention layers between the language model's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import _towers, known
from lintfit.catalog.architectures._blocks import Shape, attention, embedding, gated_mlp, head, linear, norm
from lintfit.catalog.architectures._multimodal import part
from lintfit.catalog.architectures._towers import Layer, layers, patches_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, VisionTower
from lintfit.frozen import replace

LLAMA = known("llama")

REQUIRED = ("text_config", "vision_config")
DEFAULTS = defaults("mllama", tie_word_embeddings=False)
CODE = Code(flash_attention_2=((4, 52), (5, 23)), liger=True)
TEXT: Mapping[str, Any] = {
    **{key: value for key, value in LLAMA.defaults.items() if key not in ("attention_bias", "mlp_bias")},
    "vocab_size": 128256,
    "num_hidden_layers": 40,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "max_position_embeddings": 131072,
    "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38],
}
RATIOS = [[1, 1], [1, 2], [1, 3], [1, 4], [2, 1], [2, 2], [3, 1], [4, 1]]
# Both lists stand in for a None (MllamaVisionConfig.__post_init__).
VISION = defaults(
    "mllama.vision_config",
    intermediate_layers_indices=[3, 7, 15, 23, 30],
    supported_aspect_ratios=RATIOS,
)
LAYER = Layer(norms=("input_layernorm", "post_attention_layernorm"), out="o_proj")
IMAGE_TOKENS = 8
"""Rows that the embedding has beyond the vocabulary (transformers ``MllamaTextModel``)."""


def text_of(config: Config) -> Config:
    """The language model's config; ``MllamaTextConfig`` takes its own layers for a null as well."""
    stated = config.section("text_config").get("cross_attention_layers")
    layers = TEXT["cross_attention_layers"] if stated is None else stated
    return part(config, "text_config", TEXT, cross_attention_layers=layers)


def language(config: Config) -> tuple[str, Config]:
    return "mllama", text_of(config)


def tower_of(vision: Config) -> VisionTower:
    """The numbers of both stages together."""
    tower = _towers.tower_of(vision, heads="attention_heads")
    layers = tower.layers + vision.count("num_global_layers", kind="layers")
    return replace(tower, layers=layers, tiles=vision.size("max_num_tiles"))


def text_alone(config: Config) -> bool:
    """Whether the class is the one without encoder and projector."""
    return "MllamaForCausalLM" in config.strings("architectures")


def shape(config: Config) -> Shape:
    tower = None if text_alone(config) else tower_of(part(config, "vision_config", VISION))
    # The embedding has rows that the head has not, so that nothing ties them whatever a config says.
    return replace(LLAMA.shape(text_of(config)), tied=False, vision=tower)


def vision_model(vision: Config) -> list[Tensor]:
    """The image encoder with its embeddings of positions, tiles and aspect ratios."""
    name, tower = "model.vision_model", tower_of(vision)
    width, patch, tiles = tower.hidden, tower.patch, vision.size("max_num_tiles")
    patches = patches_of(tower) + 1
    ratios = len(vision.pairs("supported_aspect_ratios") or RATIOS) + 1
    positions = f"{name}.gated_positional_embedding"
    found = [
        Tensor(f"{name}.class_embedding", (width,), 1, "other"),
        Tensor(f"{name}.patch_embedding.weight", (width, vision.size("num_channels"), patch, patch), 1, "conv"),
        Tensor(f"{positions}.gate", (1,), 1, "other"),
        Tensor(f"{positions}.embedding", (patches, width), 1, "embedding"),
        Tensor(f"{positions}.tile_embedding.weight", (ratios, tiles * patches * width), 1, "embedding"),
    ]
    for place in ("pre", "post"):
        found.append(Tensor(f"{name}.{place}_tile_positional_embedding.gate", (1,), 1, "other"))
        table = f"{name}.{place}_tile_positional_embedding.embedding.weight"
        found.append(Tensor(table, (ratios, tiles * width), 1, "embedding"))
        found += norm(f"{name}.layernorm_{place}", width, bias=True)
    local, overall = vision.size("num_hidden_layers", kind="layers"), vision.count("num_global_layers", kind="layers")
    for stage, copies in (("transformer", local), ("global_transformer", overall)):
        found += layers(
            replace(tower, layers=copies), f"{name}.{stage}.layers.{{}}", LAYER, qkv_bias=False, out_bias=False
        )
    for gate in ("gate_attn", "gate_ffn"):
        found.append(Tensor(f"{name}.global_transformer.layers.{{}}.{gate}", (1,), overall, "other"))
    return [replace(tensor, where="vision") for tensor in found]


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    if text_alone(config):
        return (*text_model(config, numbers, "model"), *head(numbers))
    vision = part(config, "vision_config", VISION)
    output = vision.size("vision_output_dim", kind="hidden")
    return (
        *vision_model(vision),
        *text_model(config, numbers, "model.language_model"),
        *linear("model.multi_modal_projector", numbers.hidden, output, bias=True, where="vision"),
        *head(numbers),
    )


def text_model(config: Config, numbers: Shape, name: str) -> list[Tensor]:
    """The language model, with cross-attention in the place of self-attention in some layers."""
    cross = sum(0 <= layer < numbers.layers for layer in text_of(config).numbers("cross_attention_layers"))
    hidden, own, layer = numbers.hidden, numbers.layers - cross, f"{name}.layers.{{}}"
    return [
        *embedding(f"{name}.embed_tokens", numbers.vocab + IMAGE_TOKENS, hidden),
        *attention(f"{layer}.self_attn", numbers, own),
        Tensor(f"{layer}.cross_attn_attn_gate", (1,), cross, "other"),
        Tensor(f"{layer}.cross_attn_mlp_gate", (1,), cross, "other"),
        *attention(f"{layer}.cross_attn", numbers, cross),
        *norm(f"{layer}.cross_attn.q_norm", numbers.head_dim, cross),
        *norm(f"{layer}.cross_attn.k_norm", numbers.head_dim, cross),
        *gated_mlp(f"{layer}.mlp", hidden, numbers.intermediate, numbers.layers),
        *norm(f"{layer}.input_layernorm", hidden, numbers.layers),
        *norm(f"{layer}.post_attention_layernorm", hidden, numbers.layers),
        *norm(f"{name}.norm", hidden, where="final"),
    ]
