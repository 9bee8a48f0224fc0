"""Gemma 4 as it is published: with an image encoder, and for E2B and E4B one of sound."""

from __future__ import annotations

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import Shape, gated_mlp, linear, norm
from lintfit.catalog.architectures._decoder import GEMMA_NORMS
from lintfit.catalog.architectures._multimodal import language_model, part
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor, VisionTower
from lintfit.frozen import replace

GEMMA4_TEXT = known("gemma4_text")

REQUIRED = ("text_config",)
DEFAULTS = defaults("gemma4", vision_soft_tokens_per_image=280)
VISION = defaults("gemma4.vision_config")
AUDIO = defaults("gemma4.audio_config")
CHANNELS = 3


def text_of(config: Config) -> Config:
    return part(config, "text_config", GEMMA4_TEXT.defaults, tie_word_embeddings=config.flag("tie_word_embeddings"))


def language(config: Config) -> tuple[str, Config]:
    return "gemma4_text", text_of(config)


def shape(config: Config) -> Shape:
    numbers = GEMMA4_TEXT.shape(text_of(config))
    if config.get("vision_config") is None:
        return numbers
    vision = part(config, "vision_config", VISION)
    tower = VisionTower(
        hidden=vision.size("hidden_size", kind="hidden"),
        layers=vision.size("num_hidden_layers", kind="layers"),
        heads=vision.size("num_attention_heads", kind="heads"),
        intermediate=vision.size("intermediate_size", kind="intermediate"),
        patch=vision.size("patch_size"),
        tokens=config.size("vision_soft_tokens_per_image"),
        merge=vision.size("pooling_kernel_size") ** 2,
    )
    return replace(numbers, vision=tower)


def tensors(config: Config) -> tuple[Tensor, ...]:
    text = text_of(config)
    hidden = GEMMA4_TEXT.shape(text).hidden
    found: list[Tensor] = []
    if config.get("vision_config") is not None:
        vision = part(config, "vision_config", VISION)
        found += _vision(vision, "model.vision_tower")
        width = vision.size("hidden_size", kind="hidden")
        found += linear("model.embed_vision.embedding_projection", hidden, width)
    if config.get("audio_config") is not None:
        audio = part(config, "audio_config", AUDIO)
        found += _audio(audio, "model.audio_tower")
        width = audio.size("output_proj_dims", kind="hidden")
        found += linear("model.embed_audio.embedding_projection", hidden, width)
    return (*(replace(tensor, where="vision") for tensor in found), *language_model(GEMMA4_TEXT, text))


def _vision(vision: Config, name: str) -> list[Tensor]:
    width, layers = vision.size("hidden_size", kind="hidden"), vision.size("num_hidden_layers", kind="layers")
    head, patch = vision.size("head_dim", kind="head_dim"), vision.size("patch_size")
    queries = vision.size("num_attention_heads", kind="heads") * head
    keys = vision.size("num_key_value_heads", kind="heads") * head
    inner = vision.size("intermediate_size", kind="intermediate")
    layer, place = f"{name}.encoder.layers.{{}}", f"{name}.patch_embedder"
    return [
        Tensor(f"{place}.position_embedding_table", (2, vision.size("position_embedding_size"), width), 1, "other"),
        *linear(f"{place}.input_proj", width, CHANNELS * patch**2),
        *_clipped(f"{layer}.self_attn.q_proj", queries, width, layers),
        *_clipped(f"{layer}.self_attn.k_proj", keys, width, layers),
        *_clipped(f"{layer}.self_attn.v_proj", keys, width, layers),
        *_clipped(f"{layer}.self_attn.o_proj", width, queries, layers),
        *norm(f"{layer}.self_attn.q_norm", head, layers),
        *norm(f"{layer}.self_attn.k_norm", head, layers),
        *(replace(tensor, name=_inside(tensor.name)) for tensor in gated_mlp(f"{layer}.mlp", width, inner, layers)),
        *(tensor for which in GEMMA_NORMS for tensor in norm(f"{layer}.{which}", width, layers)),
    ]


def _inside(name: str) -> str:
    return f"{name.removesuffix('.weight')}.linear.weight"


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
