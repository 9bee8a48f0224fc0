"""Llama 4 with its image encoder: Scout and Maverick as they are published."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import linear, norm
from lintfit.catalog.architectures._multimodal import Multimodal, Parts, Text
from lintfit.catalog.architectures._towers import Layer, Own, layers, patches_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor, VisionTower
from lintfit.frozen import replace

LAYER = Layer(norms=("input_layernorm", "post_attention_layernorm"), out="o_proj")
TILES = 16
"""Tiles that the processor cuts an image into at most, the whole beside them (``image_processing_llama4.py``)."""


def _seen(parts: Parts) -> VisionTower:
    tokens = int(patches_of(parts.tower) * parts.vision.share("pixel_shuffle_ratio", 1.0) ** 2)
    return replace(parts.tower, tokens=tokens, tiles=TILES + 1)


def _encoder(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    """The image encoder with the adapter that makes one token of several patches."""
    width = tower.hidden
    given, output = (vision.size(key, kind="hidden") for key in ("projector_input_dim", "projector_output_dim"))
    return [
        *linear(f"{name}.patch_embedding.linear", width, vision.size("num_channels") * tower.patch**2),
        Tensor(f"{name}.class_embedding", (width,), 1, "other"),
        Tensor(f"{name}.positional_embedding_vlm", (patches_of(tower) + 1, width), 1, "other"),
        *norm(f"{name}.layernorm_pre", width, bias=True),
        *norm(f"{name}.layernorm_post", width, bias=True),
        *layers(tower, f"{name}.model.layers.{{}}", LAYER),
        *linear(f"{name}.vision_adapter.mlp.fc1", given, tower.intermediate),
        *linear(f"{name}.vision_adapter.mlp.fc2", output, output),
    ]


def _projector(parts: Parts) -> list[Tensor]:
    output = parts.vision.size("vision_output_dim", kind="hidden")
    return linear("multi_modal_projector.linear_1", parts.hidden, output)


ROW = Multimodal(
    __doc__,
    text=Text("llama4_text", tied=None),
    vision=Own(defaults("llama4.vision_config"), _encoder),
    encoders=("vision_model",),
    prefix="language_model.",
    whole=True,
    seen=_seen,
    beside=_projector,
    code=Code(flash_attention_2=NEVER, liger=True, text_by_auto=True),
)
