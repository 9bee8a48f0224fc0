"""Janus and Janus-Pro: an encoder of SigLIP's kind to see with, a vector-quantised one to draw with, and Llama."""

from __future__ import annotations

import functools

from lintfit.catalog.architectures._blocks import linear, norm
from lintfit.catalog.architectures._multimodal import Multimodal, Parts, Text, part
from lintfit.catalog.architectures._projectors import a_token_a_patch
from lintfit.catalog.architectures._towers import Layer, Own, convolution, layers, patches, patches_of, tower_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower

LAYER = Layer(out="projection_layer")


def _seeing(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    """The encoder of images that the model reads."""
    width, layer, place = tower.hidden, f"{name}.encoder.layers.{{}}", f"{name}.embeddings"
    bias, normed = vision.flag("attention_bias"), width * vision.flag("use_qk_norm")
    return [
        *patches(f"{place}.patch_embedding", vision),
        Tensor(f"{place}.position_embedding.weight", (patches_of(tower), width), 1, "embedding"),
        *layers(tower, layer, LAYER, qkv_bias=bias, normed=normed, normed_bias=True),
        *norm(f"{name}.post_layernorm", width, bias=True),
    ]


def _beside(parts: Parts) -> list[Tensor]:
    vision = parts.vision
    return [
        *_aligner("model.aligner", parts.tower.hidden, vision.size("projection_dim"), vision.size("depth")),
        *_drawing(part(parts.config, "vq_config", defaults("janus.vq_config"))),
    ]


def _aligner(name: str, rows: int, width: int, depth: int) -> list[Tensor]:
    """Linear layers from one width to another."""
    later = linear(f"{name}.hidden_layers.{{}}", width, width, depth - 1, bias=True) if depth > 1 else []
    return [*linear(f"{name}.fc1", width, rows, bias=True), *later]


def _drawing(drawn: Config) -> list[Tensor]:
    """The parts that draw: a vector-quantised encoder and decoder, and what leads to them and from them."""
    words, narrow, wide = (drawn.size(key) for key in ("num_embeddings", "embed_dim", "projection_dim"))
    latent, name = drawn.size("latent_channels"), "model.vqmodel"
    return [
        *coder(drawn, f"{name}.encoder", decodes=False),
        *coder(drawn, f"{name}.decoder", decodes=True),
        Tensor(f"{name}.quantize.embedding.weight", (words, narrow), 1, "embedding"),
        *conv(f"{name}.quant_conv", latent, narrow, 1),
        *conv(f"{name}.post_quant_conv", narrow, latent, 1),
        Tensor("model.generation_embeddings.weight", (words, narrow), 1, "embedding"),
        *_aligner("model.generation_aligner", narrow, wide, drawn.size("num_hidden_layers")),
        *linear("model.generation_head.proj_out", wide, drawn.size("image_token_embed_dim"), bias=True),
        *linear("model.generation_head.vision_head", words, wide, bias=True),
    ]


def conv(name: str, before: int, after: int, side: int) -> list[Tensor]:
    """A convolution over squares, with its bias."""
    return convolution(name, (after, before, side, side))


def _residual(name: str, before: int, after: int) -> list[Tensor]:
    """``JanusVQVAEResnetBlock``."""
    found = [
        *norm(f"{name}.norm1", before, bias=True),
        *conv(f"{name}.conv1", before, after, 3),
        *norm(f"{name}.norm2", after, bias=True),
        *conv(f"{name}.conv2", after, after, 3),
    ]
    return found if before == after else [*found, *conv(f"{name}.nin_shortcut", before, after, 1)]


def _attending(name: str, width: int) -> list[Tensor]:
    """``JanusVQVAEAttnBlock``."""
    found = norm(f"{name}.norm", width, bias=True)
    for which in ("q", "k", "v", "proj_out"):
        found += conv(f"{name}.{which}", width, width, 1)
    return found


def coder(
    drawn: Config, name: str, *, decodes: bool, attended: tuple[int, ...] | None = None, middle: bool = True
) -> list[Tensor]:
    """The encoder, from many pixels to few; or the decoder, the other way and with a block more of each size.

    ``attended``: the levels with attention behind each block, the smallest by default. ``middle``: whether it stands
    between the two blocks behind them.
    """
    base, latent = drawn.size("base_channels"), drawn.size("latent_channels")
    widths = [base * times for times in drawn.numbers("channel_multiplier")]
    blocks, smallest = drawn.size("num_res_blocks") + decodes, len(widths) - 1
    attended = (smallest,) if attended is None else attended
    levels = range(smallest, -1, -1) if decodes else range(len(widths))
    width = widths[-1] if decodes else base
    found = conv(f"{name}.conv_in", latent if decodes else drawn.size("in_channels"), width, 3)
    for number, level in enumerate(levels):
        place = f"{name}.{'up' if decodes else 'down'}.{number}"
        for block in range(blocks):
            found += _residual(f"{place}.block.{block}", width, widths[level])
            width = widths[level]
            if level in attended:
                found += _attending(f"{place}.attn.{block}", width)
        if decodes and level:
            found += conv(f"{place}.upsample.conv", width, width, 3)
        if not decodes and level != smallest:
            found += conv(f"{place}.downsample.conv", width, width, 3)
    last, given = widths[-1], 2 * latent if drawn.flag("double_latent") else latent
    return [
        *found,
        *_residual(f"{name}.mid.block_1", last, last),
        *(_attending(f"{name}.mid.attn_1", last) if middle else []),
        *_residual(f"{name}.mid.block_2", last, last),
        *norm(f"{name}.norm_out", width, bias=True),
        *conv(f"{name}.conv_out", width, drawn.size("out_channels") if decodes else given, 3),
    ]


ROW = Multimodal(
    __doc__,
    text=Text("llama", free=True),
    vision=Own(defaults("janus.vision_config"), _seeing, functools.partial(tower_of, ratio="mlp_ratio")),
    encoders=("model.vision_model",),
    seen=a_token_a_patch,
    beside=_beside,
    notes=("of Janus' own drawing only the parameters count: training on images that it reads runs none of it",),
)
