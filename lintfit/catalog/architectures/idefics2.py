"""Idefics 2: SigLIP at any resolution, a gated projection, a perceiver that makes 64 tokens of it, and Mistral."""

from __future__ import annotations

from lintfit.catalog.architectures import llava
from lintfit.catalog.architectures._blocks import Shape, gated_mlp, linear, norm
from lintfit.catalog.architectures._multimodal import language_model, part, siglip, tower_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = ("text_config", "vision_config")
DEFAULTS = defaults("idefics2")
VISION = defaults("idefics2.vision_config")
PERCEIVER = defaults("idefics2.perceiver_config")
MOST_TILES = 4 + 1
"""``do_image_splitting`` cuts an image into four and keeps it beside them (``Idefics2ImageProcessor``)."""


def language(config: Config) -> tuple[str, Config]:
    model, text = llava.text_of(config, "mistral")
    return model.name, text


def shape(config: Config) -> Shape:
    model, text = llava.text_of(config, "mistral")
    vision = tower_of(part(config, "vision_config", VISION))
    tokens = part(config, "perceiver_config", PERCEIVER).size("resampler_n_latents")
    numbers: Shape = model.shape(text)
    return replace(numbers, vision=replace(vision, tokens=tokens, tiles=MOST_TILES))


def perceiver(config: Config, name: str) -> list[Tensor]:
    """The layers of cross-attention from learnt latents to an image's patches."""
    width, layers = config.size("hidden_size", kind="hidden"), config.size("resampler_depth", kind="layers")
    dim, layer = config.size("resampler_head_dim", kind="head_dim"), f"{name}.layers.{{}}"
    wide = config.size("resampler_n_heads", kind="heads") * dim
    narrow = config.size("num_key_value_heads", kind="heads") * dim
    found = [
        Tensor(f"{name}.latents", (config.size("resampler_n_latents"), width), 1, "other"),
        *linear(f"{layer}.self_attn.q_proj", wide, width, layers),
        *linear(f"{layer}.self_attn.k_proj", narrow, width, layers),
        *linear(f"{layer}.self_attn.v_proj", narrow, width, layers),
        *linear(f"{layer}.self_attn.o_proj", width, wide, layers),
        *gated_mlp(f"{layer}.mlp", width, 4 * width, layers),
        *norm(f"{name}.norm", width),
    ]
    for which in ("input_latents_norm", "input_context_norm", "post_attention_layernorm"):
        found += norm(f"{layer}.{which}", width, layers)
    return [replace(tensor, where="vision") for tensor in found]


def tensors(config: Config) -> tuple[Tensor, ...]:
    model, text = llava.text_of(config, "mistral")
    vision, numbers, name = part(config, "vision_config", VISION), model.shape(text), "model.connector"
    width, projection = vision.size("hidden_size", kind="hidden"), f"{name}.modality_projection"
    gates = [
        *linear(f"{projection}.gate_proj", numbers.intermediate, width, where="vision"),
        *linear(f"{projection}.up_proj", numbers.intermediate, width, where="vision"),
        *linear(f"{projection}.down_proj", numbers.hidden, numbers.intermediate, where="vision"),
    ]
    return (
        *siglip(vision, "model.vision_model", pooling=False),
        *gates,
        *perceiver(part(config, "perceiver_config", PERCEIVER), f"{name}.perceiver_resampler"),
        *language_model(model, text, prefix="model.text_model."),
    )
