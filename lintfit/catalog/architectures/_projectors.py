"""What stands between an encoder and a language model, and how many tokens become of an image there."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import linear, norm
from lintfit.catalog.architectures._multimodal import Parts
from lintfit.catalog.architectures._towers import convolution, patches_of
from lintfit.catalog.config import LARGEST, Config
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

PROJECTOR = "model.multi_modal_projector"


def a_token_a_patch(parts: Parts) -> VisionTower:
    """Every patch is a token; of Pixtral's there are as many as the image has itself."""
    if parts.vision.get("model_type") == "pixtral":
        return replace(parts.tower, merge=1)
    return replace(parts.tower, tokens=patches_of(parts.tower))


def tiled(parts: Parts) -> VisionTower:
    """The same of every tile of the largest grid that an image may be cut into, and of the whole beside them."""
    tower, grids = a_token_a_patch(parts), parts.config.pairs("image_grid_pinpoints")
    size = tower.image_size or 1
    return replace(tower, tiles=1 + max((-(-height // size) * -(-width // size) for height, width in grids), default=0))


def shuffled(parts: Parts, merged: int, tiles: int) -> VisionTower:
    """``merged`` patches to a token, of so many ``tiles`` at most."""
    return replace(parts.tower, tokens=patches_of(parts.tower) // merged, tiles=tiles)


def two_layers(name: str, out: int, width: int, *, bias: bool) -> list[Tensor]:
    """Two linear layers from one width to the other."""
    return [*linear(f"{name}.linear_1", out, width, bias=bias), *linear(f"{name}.linear_2", out, out, bias=bias)]


def llava(parts: Parts) -> list[Tensor]:
    """Two layers behind those of the encoder's layers that it takes side by side."""
    bias = parts.config.flag("multimodal_projector_bias")
    return two_layers(PROJECTOR, parts.hidden, taken(parts), bias=bias)


def with_line_break(parts: Parts) -> list[Tensor]:
    """LLaVA's with a learnt break between rows of tiles."""
    return [Tensor("model.image_newline", (parts.hidden,), 1, "other"), *llava(parts)]


def with_pool(parts: Parts) -> list[Tensor]:
    """LLaVA-NeXT's with a convolution in front of it that pools frames, where the config has one."""
    config, width = parts.config, parts.tower.hidden
    if config.text("spatial_pool_mode") != "conv":
        return with_line_break(parts)
    side = config.size("spatial_pool_stride")
    out = config.size("spatial_pool_out_channels", kind="hidden", default=width)
    return [*with_line_break(parts), *convolution("model.vision_resampler.pool", (out, width, side, side))]


def normed(parts: Parts) -> list[Tensor]:
    """ViP-LLaVA's: LLaVA's behind a norm."""
    width = taken(parts)
    return [
        *norm(f"{PROJECTOR}.projector_layernorm", width, bias=True),
        *two_layers(PROJECTOR, parts.hidden, width, bias=True),
    ]


def taken(parts: Parts) -> int:
    """Width of those of the encoder's layers that a projector takes side by side."""
    return parts.tower.hidden * _feature_layers(parts.config)


def _feature_layers(config: Config) -> int:
    layers = config.get("vision_feature_layer")
    if layers is None or _is_layer(layers):
        return 1
    if not isinstance(layers, list) or not all(map(_is_layer, layers)):
        raise config.error("vision_feature_layer", "must be the number of a layer, or a list of such numbers")
    return len(layers) or 1


def _is_layer(value: object) -> bool:
    """Whether a value is the number of a layer, which may be counted from the end."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST["layers"]


def squares(parts: Parts) -> VisionTower:
    """Pixtral's patches, a square of which is merged to a token."""
    return replace(parts.tower, merge=parts.config.size("spatial_merge_size") ** 2)


def merger(parts: Parts, name: str) -> list[Tensor]:
    """What merges a square of Pixtral's patches, in front of a projector's layers."""
    width, merged = parts.tower.hidden, parts.config.size("spatial_merge_size") ** 2
    return [*norm(f"{name}.norm", width), *linear(f"{name}.patch_merger.merging_layer", width, width * merged)]


def mistral(parts: Parts) -> list[Tensor]:
    """Mistral 3's: merged patches, and LLaVA's layers."""
    return [*merger(parts, PROJECTOR), *llava(parts)]


def lighton(parts: Parts) -> list[Tensor]:
    """The same without biases under another name."""
    name = "model.vision_projection"
    return [*merger(parts, name), *two_layers(name, parts.hidden, parts.tower.hidden, bias=False)]


def downsampled(parts: Parts) -> VisionTower:
    """Aya Vision's tokens; ``max_patches`` of the processor is 12, and the whole image stands beside them."""
    return shuffled(parts, parts.config.size("downsample_factor") ** 2, 12 + 1)


def gated(parts: Parts) -> list[Tensor]:
    """Command A Vision's: of what the first layer gives the one half gates the other."""
    config, inner = parts.config, parts.hidden
    if config.get("alignment_intermediate_size") is not None:
        inner = config.size("alignment_intermediate_size", kind="intermediate")
    if inner % 2:
        raise config.error("alignment_intermediate_size", "must be even")
    return [
        *linear(f"{PROJECTOR}.linear_1", inner, _downsampled_width(parts), bias=True),
        *linear(f"{PROJECTOR}.linear_2", parts.hidden, inner // 2, bias=True),
    ]


def gated_behind_norm(parts: Parts) -> list[Tensor]:
    """Aya Vision's."""
    return [*norm(f"{PROJECTOR}.layernorm", _downsampled_width(parts), bias=True), *gated(parts)]


def _downsampled_width(parts: Parts) -> int:
    return parts.tower.hidden * parts.config.size("downsample_factor") ** 2


def scaled(parts: Parts) -> VisionTower:
    """Idefics 3's tokens, of four tiles a side at most and the whole image beside them (``Idefics3ImageProcessor``)."""
    return shuffled(parts, parts.config.size("scale_factor") ** 2, 4 * 4 + 1)


def one_layer(parts: Parts) -> list[Tensor]:
    """Idefics 3's: one layer behind pixel shuffle."""
    merged = parts.tower.hidden * parts.config.size("scale_factor") ** 2
    return linear("model.connector.modality_projection.proj", parts.hidden, merged)


def ratio(config: Config) -> int:
    """Patches that InternVL's pixel shuffle puts into one token."""
    return int(1 / config.share("downsample_ratio", 0.5)) ** 2


def halved(parts: Parts) -> VisionTower:
    """InternVL's tokens; ``max_patches`` of the processor (``GotOcr2ImageProcessor``) and the whole image."""
    return shuffled(parts, ratio(parts.config), 12 + 1)


def intern(parts: Parts) -> list[Tensor]:
    """InternVL's: two layers behind pixel shuffle and a norm."""
    merged = parts.tower.hidden * ratio(parts.config)
    return [
        *norm(f"{PROJECTOR}.layer_norm", merged, bias=True),
        *two_layers(PROJECTOR, parts.hidden, merged, bias=True),
    ]


def aligner(parts: Parts) -> list[Tensor]:
    """DeepSeek VL's two layers."""
    return [
        *linear("model.aligner.linear1", parts.hidden, parts.tower.hidden, bias=True),
        *linear("model.aligner.linear2", parts.hidden, parts.hidden, bias=True),
    ]


def soft_tokens(parts: Parts) -> VisionTower:
    """Gemma 3's tokens, so many whatever the image."""
    return replace(parts.tower, tokens=parts.config.size("mm_tokens_per_image"))


def gemma(parts: Parts) -> list[Tensor]:
    """Gemma 3's: a norm and a product."""
    width = parts.tower.hidden
    return [
        Tensor(f"{PROJECTOR}.mm_input_projection_weight", (width, parts.hidden), 1, "other"),
        *norm(f"{PROJECTOR}.mm_soft_emb_norm", width),
    ]


def paligemma(parts: Parts) -> list[Tensor]:
    """PaliGemma's one layer."""
    out = parts.config.size("projection_dim", kind="hidden")
    return linear(f"{PROJECTOR}.linear", out, parts.tower.hidden, bias=True)
