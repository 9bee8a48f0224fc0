"""Llama 4 with its image encoder: Scout and Maverick as they are published."""

from __future__ import annotations

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import Shape, attention, linear, norm, plain_mlp
from lintfit.catalog.architectures._multimodal import as_shape, part, tower_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor
from lintfit.frozen import replace

LLAMA4_TEXT = known("llama4_text")

REQUIRED = ("text_config",)
DEFAULTS = defaults("llama4")
CODE = Code(flash_attention_2=NEVER, liger=True, text_by_auto=True)
VISION = defaults("llama4.vision_config")
TILES = 16
"""Tiles that the processor cuts an image into at most, the whole beside them (``image_processing_llama4.py``)."""


def text_of(config: Config) -> Config:
    return part(config, "text_config", LLAMA4_TEXT.defaults)


def vision_of(config: Config) -> Config:
    return part(config, "vision_config", VISION)


def language(config: Config) -> tuple[str, Config]:
    return "llama4_text", text_of(config)


def shape(config: Config) -> Shape:
    vision = vision_of(config)
    tower = tower_of(vision)
    tokens = int(((tower.image_size or 0) // tower.patch) ** 2 * vision.share("pixel_shuffle_ratio", 1.0) ** 2)
    return replace(LLAMA4_TEXT.shape(text_of(config)), vision=replace(tower, tokens=tokens, tiles=TILES + 1))


def encoder(vision: Config, name: str) -> list[Tensor]:
    """The image encoder with the adapter that makes one token of several patches."""
    tower, layer = tower_of(vision), f"{name}.model.layers.{{}}"
    width, layers = tower.hidden, tower.layers
    patches = ((tower.image_size or 0) // tower.patch) ** 2
    given, output = (vision.size(key, kind="hidden") for key in ("projector_input_dim", "projector_output_dim"))
    found = [
        *linear(f"{name}.patch_embedding.linear", width, vision.size("num_channels") * tower.patch**2),
        Tensor(f"{name}.class_embedding", (width,), 1, "other"),
        Tensor(f"{name}.positional_embedding_vlm", (patches + 1, width), 1, "other"),
        *norm(f"{name}.layernorm_pre", width, bias=True),
        *norm(f"{name}.layernorm_post", width, bias=True),
        *attention(f"{layer}.self_attn", as_shape(tower), layers, bias=True, out_bias=True),
        *plain_mlp(f"{layer}.mlp", width, tower.intermediate, layers, up="fc1", down="fc2"),
        *norm(f"{layer}.input_layernorm", width, layers, bias=True),
        *norm(f"{layer}.post_attention_layernorm", width, layers, bias=True),
        *linear(f"{name}.vision_adapter.mlp.fc1", given, tower.intermediate),
        *linear(f"{name}.vision_adapter.mlp.fc2", output, output),
    ]
    return [replace(tensor, where="vision") for tensor in found]


def tensors(config: Config) -> tuple[Tensor, ...]:
    text, vision = text_of(config), vision_of(config)
    hidden = LLAMA4_TEXT.shape(text).hidden
    output = vision.size("vision_output_dim", kind="hidden")
    return (
        *encoder(vision, "vision_model"),
        *linear("multi_modal_projector.linear_1", hidden, output, where="vision"),
        *(replace(tensor, name=f"language_model.{tensor.name}") for tensor in LLAMA4_TEXT.tensors(text)),
    )
