"""Idefics 2: SigLIP at any resolution, a gated projection, a perceiver that makes 64 tokens of it, and Mistral."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import gated_mlp, linear, norm
from lintfit.catalog.architectures._multimodal import Multimodal, Parts, Text, part
from lintfit.catalog.architectures._towers import Own, siglip_without_head
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

PERCEIVER = defaults("idefics2.perceiver_config")
MOST_TILES = 4 + 1
"""``do_image_splitting`` cuts an image into four and keeps it beside them (``Idefics2ImageProcessor``)."""


def _seen(parts: Parts) -> VisionTower:
    tokens = part(parts.config, "perceiver_config", PERCEIVER).size("resampler_n_latents")
    return replace(parts.tower, tokens=tokens, tiles=MOST_TILES)


def _perceiver(config: Config, name: str) -> list[Tensor]:
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
    return found


def _connector(parts: Parts) -> list[Tensor]:
    inner, name = parts.text.shape.intermediate, "model.connector.modality_projection"
    return [
        *linear(f"{name}.gate_proj", inner, parts.tower.hidden),
        *linear(f"{name}.up_proj", inner, parts.tower.hidden),
        *linear(f"{name}.down_proj", parts.hidden, inner),
        *_perceiver(part(parts.config, "perceiver_config", PERCEIVER), "model.connector.perceiver_resampler"),
    ]


ROW = Multimodal(
    __doc__,
    text=Text("mistral", free=True),
    vision=Own(defaults("idefics2.vision_config"), siglip_without_head),
    encoders=("model.vision_model",),
    prefix="model.text_model.",
    required=("text_config", "vision_config"),
    seen=_seen,
    beside=_connector,
)
