"""Chameleon: Llama with a LayerNorm of each head, and a vector-quantised encoder that makes words of images."""

from __future__ import annotations

from lintfit.catalog.architectures import janus
from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._multimodal import part
from lintfit.catalog.architectures._plain import Plain, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED: tuple[str, ...] = ()
DEFAULTS = defaults("chameleon")
QUANTISED = defaults("chameleon.vq_config")
NOTES = ("training on text: what the encoder of images keeps until it has made words of them is not counted",)


def shape(config: Config) -> Shape:
    return decoder_shape(config, qk_norm=True)


def _encoder(config: Config) -> list[Tensor]:
    """The vector-quantised encoder (``ChameleonVQVAE``), which has nothing of a decoder but one convolution."""
    numbers, name = part(config, "vq_config", QUANTISED), "model.vqmodel"
    attends = numbers.get("attn_type") == "vanilla"
    words, narrow, latent = (numbers.size(key) for key in ("num_embeddings", "embed_dim", "latent_channels"))
    found = [
        *janus.coder(numbers, f"{name}.encoder", decodes=False, attended=(), middle=attends),
        Tensor(f"{name}.quantize.embedding.weight", (words, narrow), 1, "embedding"),
        *janus.conv(f"{name}.quant_conv", latent, narrow, 1),
        *janus.conv(f"{name}.post_quant_conv", narrow, latent, 1),
    ]
    return [replace(tensor, where="vision") for tensor in found]


def tensors(config: Config) -> tuple[Tensor, ...]:
    if config.section("vq_config").get("attn_resolutions"):
        raise config.error("vq_config", "attn_resolutions must be null")
    numbers, name = shape(config), "model.layers.{}.self_attn"
    found = list(decoder(Plain("Llama"), config, replace(numbers, qk_norm=False)))
    for which, heads in (("q_norm", numbers.heads), ("k_norm", numbers.kv_heads)):
        size = (heads, numbers.head_dim)
        found.append(Tensor(f"{name}.{which}.weight", size, numbers.layers, "norm"))
        found.append(Tensor(f"{name}.{which}.bias", size, numbers.layers, "bias"))
    return (*found, *_encoder(config))
