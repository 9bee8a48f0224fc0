"""Janus and Janus-Pro: an encoder of SigLIP's kind to see with, a vector-quantised one to draw with, and Llama."""

from __future__ import annotations

from lintfit.catalog.architectures import llava
from lintfit.catalog.architectures._blocks import Shape, linear, norm, plain_mlp
from lintfit.catalog.architectures._multimodal import language_model, part, patches
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

REQUIRED = ("text_config",)
DEFAULTS = defaults("janus")
VISION = defaults("janus.vision_config")
DRAWN = defaults("janus.vq_config")
NOTES = ("of Janus' own drawing only the parameters count: training on images that it reads runs none of it",)


def language(config: Config) -> tuple[str, Config]:
    return llava.language(config)


def vision_of(config: Config) -> Config:
    return part(config, "vision_config", VISION)


def shape(config: Config) -> Shape:
    model, text = llava.text_of(config)
    vision = vision_of(config)
    width, patch, image = (vision.size(key) for key in ("hidden_size", "patch_size", "image_size"))
    tower = VisionTower(
        hidden=width,
        layers=vision.size("num_hidden_layers", kind="layers"),
        heads=vision.size("num_attention_heads", kind="heads"),
        intermediate=int(width * (vision.number("mlp_ratio") or 0)),
        patch=patch,
        image_size=image,
        tokens=(image // patch) ** 2,
    )
    numbers: Shape = model.shape(text)
    return replace(numbers, vision=tower)


def tensors(config: Config) -> tuple[Tensor, ...]:
    model, text = llava.text_of(config)
    found = [*_seeing(config), *_drawing(part(config, "vq_config", DRAWN))]
    return (*(replace(tensor, where="vision") for tensor in found), *language_model(model, text))


def _seeing(config: Config) -> list[Tensor]:
    """The encoder of images that the model reads, and its aligner."""
    vision, tower = vision_of(config), shape(config).vision
    assert tower is not None
    width, depth, layer = tower.hidden, tower.layers, "model.vision_model.encoder.layers.{}"
    bias, attention = vision.flag("attention_bias"), f"{layer}.self_attn"
    place = "model.vision_model.embeddings"
    found = [
        *patches(f"{place}.patch_embedding", vision, bias=True),
        Tensor(f"{place}.position_embedding.weight", (tower.tokens or 0, width), 1, "embedding"),
        *norm(f"{layer}.layer_norm1", width, depth, bias=True),
        *norm(f"{layer}.layer_norm2", width, depth, bias=True),
        *linear(f"{attention}.projection_layer", width, width, depth, bias=True),
        *plain_mlp(f"{layer}.mlp", width, tower.intermediate, depth, up="fc1", down="fc2"),
        *norm("model.vision_model.post_layernorm", width, bias=True),
        *_aligner("model.aligner", width, vision.size("projection_dim"), vision.size("depth")),
    ]
    for projection in ("q_proj", "k_proj", "v_proj"):
        found += linear(f"{attention}.{projection}", width, width, depth, bias=bias)
    if vision.flag("use_qk_norm"):
        found += [
            *norm(f"{attention}.q_norm", width, depth, bias=True),
            *norm(f"{attention}.k_norm", width, depth, bias=True),
        ]
    return found


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
    """A convolution with its bias."""
    return [
        Tensor(f"{name}.weight", (after, before, side, side), 1, "conv"),
        Tensor(f"{name}.bias", (after,), 1, "bias"),
    ]


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
