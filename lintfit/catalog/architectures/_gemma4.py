"""Gemma 4 as it is published: with an image encoder, and for E2B and E4B one of sound; 12B with encoders of neither,
whose pixels and sound go through a norm and a projection between the words."""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.catalog.architectures._blocks import gated_mlp, linear, norm
from lintfit.catalog.architectures._decoder import GEMMA_NORMS
from lintfit.catalog.architectures._multimodal import Multimodal, Parts, Text, part
from lintfit.catalog.architectures._towers import Own, tower_of
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

AUDIO = defaults("gemma4.audio_config")
UNIFIED_AUDIO = defaults("gemma4_unified.audio_config")
CHANNELS = 3


def _read(vision: Config) -> VisionTower:
    return replace(tower_of(vision, sized=False), merge=vision.size("pooling_kernel_size") ** 2)


def _seen(parts: Parts) -> VisionTower | None:
    if parts.config.get("vision_config") is None:
        return None
    return replace(parts.tower, tokens=parts.config.size("vision_soft_tokens_per_image"))


def _beside(parts: Parts) -> list[Tensor]:
    """A projection of what each encoder of a config gives, and that of sound."""
    found: list[Tensor] = []
    if parts.config.get("vision_config") is not None:
        found += linear("model.embed_vision.embedding_projection", parts.hidden, parts.tower.hidden)
    if parts.config.get("audio_config") is not None:
        audio = part(parts.config, "audio_config", AUDIO)
        found += _audio(audio, "model.audio_tower")
        width = audio.size("output_proj_dims", kind="hidden")
        found += linear("model.embed_audio.embedding_projection", parts.hidden, width)
    return found


def _vision(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    width, layers, head = tower.hidden, tower.layers, vision.size("head_dim", kind="head_dim")
    queries, keys = tower.heads * head, vision.size("num_key_value_heads", kind="heads") * head
    mlp = gated_mlp(f"{name}.encoder.layers.{{}}.mlp", width, tower.intermediate, layers)
    layer, place = f"{name}.encoder.layers.{{}}", f"{name}.patch_embedder"
    return [
        Tensor(f"{place}.position_embedding_table", (2, vision.size("position_embedding_size"), width), 1, "other"),
        *linear(f"{place}.input_proj", width, CHANNELS * tower.patch**2),
        *_clipped(f"{layer}.self_attn.q_proj", queries, width, layers),
        *_clipped(f"{layer}.self_attn.k_proj", keys, width, layers),
        *_clipped(f"{layer}.self_attn.v_proj", keys, width, layers),
        *_clipped(f"{layer}.self_attn.o_proj", width, queries, layers),
        *norm(f"{layer}.self_attn.q_norm", head, layers),
        *norm(f"{layer}.self_attn.k_norm", head, layers),
        *(replace(each, name=f"{each.name.removesuffix('.weight')}.linear.weight") for each in mlp),
        *(tensor for which in GEMMA_NORMS for tensor in norm(f"{layer}.{which}", width, layers)),
    ]


def _clipped(name: str, rows: int, columns: int, copies: int) -> list[Tensor]:
    """A linear layer inside of another that clips what goes in and what comes out."""
    return linear(f"{name}.linear", rows, columns, copies)


def _audio(audio: Config, name: str) -> list[Tensor]:
    """A conformer behind two convolutions."""
    width, layers = audio.size("hidden_size", kind="hidden"), audio.size("num_hidden_layers", kind="layers")
    head = width // audio.size("num_attention_heads", kind="heads")
    channels = audio.numbers("subsampling_conv_channels")
    if len(channels) != 2:
        raise audio.error("subsampling_conv_channels", "must be two whole numbers")
    first, second = channels
    layer, front = f"{name}.layers.{{}}", f"{name}.subsample_conv_projection"
    conv, kernel = f"{layer}.lconv1d", audio.size("conv_kernel_size")
    found = [
        Tensor(f"{front}.layer0.conv.weight", (first, 1, 3, 3), 1, "conv"),
        *norm(f"{front}.layer0.norm", first),
        Tensor(f"{front}.layer1.conv.weight", (second, first, 3, 3), 1, "conv"),
        *norm(f"{front}.layer1.norm", second),
        *linear(f"{front}.input_proj_linear", width, first // 4 * second),
        Tensor(f"{layer}.self_attn.per_dim_scale", (head,), layers, "other"),
        *linear(f"{layer}.self_attn.relative_k_proj", width, width, layers),
        *_clipped(f"{conv}.linear_start", 2 * width, width, layers),
        *_clipped(f"{conv}.linear_end", width, width, layers),
        Tensor(f"{conv}.depthwise_conv1d.weight", (width, 1, kernel), layers, "conv"),
        *linear(f"{name}.output_proj", audio.size("output_proj_dims", kind="hidden"), width, bias=True),
    ]
    for projection in ("q_proj", "k_proj", "v_proj", "post"):
        found += _clipped(f"{layer}.self_attn.{projection}", width, width, layers)
    for half in ("feed_forward1", "feed_forward2"):
        found += _clipped(f"{layer}.{half}.ffw_layer_1", 4 * width, width, layers)
        found += _clipped(f"{layer}.{half}.ffw_layer_2", width, 4 * width, layers)
        found += norm(f"{layer}.{half}.pre_layer_norm", width, layers)
        found += norm(f"{layer}.{half}.post_layer_norm", width, layers)
    norms = ("norm_pre_attn", "norm_post_attn", "norm_out", "lconv1d.pre_layer_norm", "lconv1d.conv_norm")
    return [*found, *(tensor for which in norms for tensor in norm(f"{layer}.{which}", width, layers))]


def _unified_read(vision: Config) -> VisionTower:
    """What becomes a token is a square of patches, and one layer stands for the projection."""
    width = vision.size("mm_embed_dim", kind="hidden")
    return VisionTower(width, 1, 1, width, vision.size("patch_size") * vision.size("pooling_kernel_size"), merge=1)


def _unified_seen(parts: Parts) -> VisionTower | None:
    tower = _seen(parts)
    return tower and replace(tower, most=tower.tokens)


def _unified_vision(vision: Config, tower: VisionTower, name: str) -> list[Tensor]:
    width, pixels = tower.hidden, CHANNELS * tower.patch**2
    return [
        Tensor(f"{name}.pos_embedding", (vision.size("mm_posemb_size"), 2, width), 1, "other"),
        *norm(f"{name}.patch_ln1", pixels, bias=True),
        *linear(f"{name}.patch_dense", width, pixels, bias=True),
        *norm(f"{name}.patch_ln2", width, bias=True),
        *norm(f"{name}.pos_norm", width, bias=True),
    ]


def _unified_beside(parts: Parts) -> list[Tensor]:
    found: list[Tensor] = []
    if parts.config.get("vision_config") is not None:
        out = parts.vision.size("output_proj_dims", kind="hidden")
        found += linear("model.embed_vision.multimodal_embedder.embedding_projection", parts.hidden, out)
    if parts.config.get("audio_config") is not None:
        sound = part(parts.config, "audio_config", UNIFIED_AUDIO).size("audio_embed_dim", kind="hidden")
        found += linear("model.embed_audio.embedding_projection", parts.hidden, sound)
    return found


ROWS: Mapping[str, Multimodal] = {
    "gemma4": Multimodal(
        "Gemma 4 with an image encoder, and for E2B and E4B one of sound",
        text=Text("gemma4_text"),
        vision=Own(defaults("gemma4.vision_config"), _vision, _read),
        own={"vision_soft_tokens_per_image": 280},
        seen=_seen,
        beside=_beside,
    ),
    "gemma4_unified": Multimodal(
        "Gemma 4 without encoders (12B)",
        text=Text(
            "gemma4_text",
            # The class has none of the keys for the parts of Gemma 4 that this model goes without.
            defaults=defaults("gemma4_unified.text_config", vocab_size_per_layer_input=262144, global_head_dim=512),
            fixed={"enable_moe_block": False, "hidden_size_per_layer_input": 0},
        ),
        vision=Own(defaults("gemma4_unified.vision_config"), _unified_vision, _unified_read),
        encoders=("model.embed_vision",),
        own={"vision_soft_tokens_per_image": 280},
        seen=_unified_seen,
        beside=_unified_beside,
    ),
}
