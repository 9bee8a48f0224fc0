"""Parts that vision-language models share: their text part under another prefix, and the common image encoders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, attention, linear, norm, plain_mlp
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

SIGLIP = defaults("siglip.vision_config")
"""transformers ``SiglipVisionConfig``."""

CLIP = defaults("clip.vision_config")
"""transformers ``CLIPVisionConfig``."""


def part(config: Config, key: str, defaults: Mapping[str, Any], **more: Any) -> Config:
    """A nested config with its own defaults, under a name that says where it stands."""
    return Config({**config.section(key), **more}, defaults, f"{config.origin}: {key}")


def language_model(model: Any, text: Config, prefix: str = "model.language_model.") -> list[Tensor]:
    """The text part's tensors as the multimodal class names them. The head keeps its name."""
    found: list[Tensor] = []
    for tensor in model.tensors(text):
        inner = tensor.name.startswith("model.")
        found.append(replace(tensor, name=prefix + tensor.name.removeprefix("model.")) if inner else tensor)
    return found


def tower_of(config: Config, tokens: int | None = None) -> VisionTower:
    """The numbers of a CLIP- or SigLIP-like encoder."""
    return VisionTower(
        hidden=config.size("hidden_size", kind="hidden"),
        layers=config.size("num_hidden_layers", kind="layers"),
        heads=config.size("num_attention_heads", kind="heads"),
        intermediate=config.size("intermediate_size", kind="intermediate"),
        patch=config.size("patch_size"),
        image_size=config.size("image_size"),
        tokens=tokens,
    )


def as_shape(tower: VisionTower) -> Shape:
    """An encoder's numbers as the building blocks of layers take them."""
    return Shape(
        hidden=tower.hidden,
        layers=tower.layers,
        heads=tower.heads,
        kv_heads=tower.heads,
        head_dim=tower.hidden // tower.heads,
        intermediate=tower.intermediate,
        vocab=1,
        tied=True,
        gated=False,
        norm="layernorm",
        activation="gelu",
    )


def encoder_layers(tower: VisionTower, layer: str) -> list[Tensor]:
    """The transformer layers of a CLIP- or SigLIP-like encoder."""
    width, layers = tower.hidden, tower.layers
    found = [
        *norm(f"{layer}.layer_norm1", width, layers, bias=True),
        *attention(f"{layer}.self_attn", as_shape(tower), layers, bias=True, out_bias=True, out="out_proj"),
        *norm(f"{layer}.layer_norm2", width, layers, bias=True),
        *plain_mlp(f"{layer}.mlp", width, tower.intermediate, layers, up="fc1", down="fc2"),
    ]
    return [replace(tensor, where="vision") for tensor in found]


def patches(name: str, config: Config, *, bias: bool) -> list[Tensor]:
    """The convolution that turns patches into embeddings."""
    width, patch = config.size("hidden_size", kind="hidden"), config.size("patch_size")
    weight = Tensor(f"{name}.weight", (width, config.size("num_channels"), patch, patch), 1, "conv", "vision")
    return [weight, Tensor(f"{name}.bias", (width,), 1, "bias", "vision")] if bias else [weight]


def siglip(config: Config, name: str, *, pooling: bool) -> list[Tensor]:
    """A SigLIP encoder, with its attention-pooling head where the model keeps it."""
    tower = tower_of(config)
    width, side = tower.hidden, (tower.image_size or 0) // tower.patch
    found = [
        *patches(f"{name}.embeddings.patch_embedding", config, bias=True),
        Tensor(f"{name}.embeddings.position_embedding.weight", (side * side, width), 1, "embedding", "vision"),
        *encoder_layers(tower, f"{name}.encoder.layers.{{}}"),
        *norm(f"{name}.post_layernorm", width, bias=True, where="vision"),
    ]
    return found + (pooling_head(tower, f"{name}.head") if pooling else [])


def pooling_head(tower: VisionTower, name: str) -> list[Tensor]:
    """SigLIP's head: one learnt query that attends to all patches."""
    width = tower.hidden
    mlp = plain_mlp(f"{name}.mlp", width, tower.intermediate, 1, up="fc1", down="fc2")
    return [
        Tensor(f"{name}.probe", (1, 1, width), 1, "other", "vision"),
        Tensor(f"{name}.attention.in_proj_weight", (3 * width, width), 1, "other", "vision"),
        Tensor(f"{name}.attention.in_proj_bias", (3 * width,), 1, "bias", "vision"),
        *linear(f"{name}.attention.out_proj", width, width, bias=True, where="vision"),
        *norm(f"{name}.layernorm", width, bias=True, where="vision"),
        *(replace(tensor, where="vision") for tensor in mlp),
    ]


def clip(config: Config, name: str) -> list[Tensor]:
    """A CLIP vision encoder."""
    tower = tower_of(config)
    width, side = tower.hidden, (tower.image_size or 0) // tower.patch
    return [
        Tensor(f"{name}.embeddings.class_embedding", (width,), 1, "other", "vision"),
        *patches(f"{name}.embeddings.patch_embedding", config, bias=False),
        Tensor(f"{name}.embeddings.position_embedding.weight", (side * side + 1, width), 1, "embedding", "vision"),
        *norm(f"{name}.pre_layrnorm", width, bias=True, where="vision"),
        *encoder_layers(tower, f"{name}.encoder.layers.{{}}"),
        *norm(f"{name}.post_layernorm", width, bias=True, where="vision"),
    ]
