"""MiniCPM-V 2.5 and 2.6, by the code in their repositories: SigLIP, a resampler, and Llama 3 or Qwen 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._architecture import Architecture
from lintfit.catalog.architectures._blocks import Shape, linear, norm
from lintfit.catalog.architectures._decoder import KEYS
from lintfit.catalog.architectures._multimodal import SIGLIP, language_model, part, siglip, tower_of
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Code, Tensor
from lintfit.frozen import replace

LLAMA, QWEN2 = known("llama"), known("qwen2")

REQUIRED = (*KEYS, "query_num", "vision_config")
DEFAULTS: Mapping[str, Any] = {"tie_word_embeddings": False, "drop_vision_last_layer": False}
CODE = Code(chooses_kernel=False)
SLICES: Mapping[str, Any] = {"max_slice_nums": 9, "scale_resolution": 448}
"""An image is cut into up to nine slices of about so many pixels a side; the whole stands beside them, as large
(OpenBMB/MiniCPM-V ``finetune/dataset.py:slice_image``)."""


def text_of(config: Config) -> tuple[Architecture, Config]:
    """Qwen 2 since version 2.6, Llama 3 before: the config states a version since then."""
    version = config.number("version") or float(config.text("version", default="0") or 0)
    model = QWEN2 if version >= 2.6 else LLAMA
    return model, Config(dict(config), model.defaults, config.origin)


def language(config: Config) -> tuple[str, Config]:
    model, text = text_of(config)
    return model.name, text


def vision_of(config: Config) -> Config:
    """The tower's config; the last layer is dropped where the model says so."""
    vision = part(config, "vision_config", SIGLIP)
    if not config.flag("drop_vision_last_layer"):
        return vision
    layers = vision.size("num_hidden_layers", kind="layers") - 1
    return part(config, "vision_config", SIGLIP, num_hidden_layers=layers)


def shape(config: Config) -> Shape:
    model, text = text_of(config)
    numbers: Shape = model.shape(text)
    tower = tower_of(vision_of(config), tokens=config.size("query_num"))
    slices = Config(config.section("slice_config"), SLICES, f"{config.origin}: slice_config")
    tiles = slices.size("max_slice_nums") + 1
    return replace(numbers, vision=replace(tower, image_size=slices.size("scale_resolution"), tiles=tiles))


def tensors(config: Config) -> tuple[Tensor, ...]:
    model, text = text_of(config)
    vision = vision_of(config)
    hidden, width = model.shape(text).hidden, vision.size("hidden_size", kind="hidden")
    language = language_model(model, text, prefix="llm.model.")
    return (
        *(replace(tensor, name=tensor.name.replace("lm_head.", "llm.lm_head.", 1)) for tensor in language),
        *siglip(vision, "vpm", pooling=False),
        *resampler(config.size("query_num"), hidden, width),
    )


def resampler(queries: int, hidden: int, width: int) -> list[Tensor]:
    """One layer of cross-attention from learnt queries to patches."""
    name = "resampler"
    return [
        Tensor(f"{name}.query", (queries, hidden), 1, "other", "vision"),
        *linear(f"{name}.kv_proj", hidden, width, where="vision"),
        Tensor(f"{name}.attn.in_proj_weight", (3 * hidden, hidden), 1, "other", "vision"),
        Tensor(f"{name}.attn.in_proj_bias", (3 * hidden,), 1, "bias", "vision"),
        *linear(f"{name}.attn.out_proj", hidden, hidden, bias=True, where="vision"),
        *norm(f"{name}.ln_q", hidden, bias=True, where="vision"),
        *norm(f"{name}.ln_kv", hidden, bias=True, where="vision"),
        *norm(f"{name}.ln_post", hidden, bias=True, where="vision"),
        Tensor(f"{name}.proj", (hidden, hidden), 1, "other", "vision"),
    ]
