"""Qwen-VL by the code in its repository: Qwen 1, whose ``visual`` is a ViT and a resampler.

Its config says ``qwen``, as the language model's alone does (see ``INSIDE`` of :mod:`.`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import linear, norm
from lintfit.catalog.architectures._decoder import KEYS
from lintfit.catalog.architectures._multimodal import Encoder, LanguageModel, Multimodal, Parts, part
from lintfit.catalog.architectures._towers import Layer, convolution, layers, tower_of
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Code, Tensor, VisionTower
from lintfit.frozen import replace

VISION: Mapping[str, Any] = {
    "width": 1664,
    "layers": 48,
    "heads": 16,
    "mlp_ratio": 4.9231,
    "patch_size": 14,
    "image_size": 448,
    "n_queries": 256,
}
"""``VisionTransformer`` of Qwen/Qwen-VL's ``visual.py``, with the numbers of its config."""

POSITIONS = 256
"""Learnt positions of the encoder, stretched to an image's patches (``torch.randn(256, width)``)."""

LAYER = Layer(norms=("ln_1", "ln_2"), attention="attn", inputs=("in_proj",), out="out_proj", up="c_fc", down="c_proj")


def _text(config: Config) -> LanguageModel:
    model = known("qwen")
    return LanguageModel(model.name, model, Config(dict(config), model.defaults, config.origin))


def _vision(config: Config) -> Encoder:
    return Encoder(part(config, "visual", VISION), _numbers, _encoder)


def _numbers(vision: Config) -> VisionTower:
    return tower_of(vision, hidden="width", layers="layers", heads="heads", ratio="mlp_ratio")


def _encoder(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    """OpenCLIP's ViT-bigG: a norm in front of the layers, none behind them."""
    width = tower.hidden
    return [
        Tensor(f"{name}.positional_embedding", (POSITIONS, width), 1, "embedding"),
        *convolution(f"{name}.conv1", (width, 3, tower.patch, tower.patch), bias=False),
        *norm(f"{name}.ln_pre", width, bias=True),
        *layers(tower, f"{name}.transformer.resblocks.{{}}", LAYER),
    ]


def _seen(parts: Parts) -> VisionTower:
    return replace(parts.tower, tokens=parts.vision.size("n_queries"))


def _resampler(parts: Parts) -> list[Tensor]:
    """One layer of cross-attention from learnt queries to patches; the positions beside it are frozen."""
    visual, hidden = "transformer.visual", parts.hidden
    name = f"{visual}.attn_pool"
    queries = (parts.vision.size("n_queries"), hidden)
    return [
        Tensor(f"{name}.query", queries, 1, "other"),
        Tensor(f"{name}.pos_embed", queries, 1, "other"),
        *linear(f"{name}.kv_proj", hidden, parts.tower.hidden),
        Tensor(f"{name}.attn.in_proj_weight", (3 * hidden, hidden), 1, "other"),
        Tensor(f"{name}.attn.in_proj_bias", (3 * hidden,), 1, "bias"),
        *linear(f"{name}.attn.out_proj", hidden, hidden, bias=True),
        *(each for which in ("ln_q", "ln_kv") for each in norm(f"{name}.{which}", hidden, bias=True)),
        *norm(f"{visual}.ln_post", hidden, bias=True),
        Tensor(f"{visual}.proj", (hidden, hidden), 1, "other"),
    ]


ROW = Multimodal(
    __doc__,
    text=_text,
    vision=_vision,
    encoders=("transformer.visual",),
    prefix="",
    whole=True,
    declared=False,
    required=(*KEYS, "visual"),
    seen=_seen,
    beside=_resampler,
    code=Code(chooses_kernel=False, own_dtype=True),
)
