"""VaultGemma: Gemma 2 without the norms behind attention and MLP."""

from __future__ import annotations

from lintfit.catalog.architectures import gemma2
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.architectures._decoder import Style, decoder
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor

REQUIRED = gemma2.REQUIRED
DEFAULTS = defaults("vaultgemma")


def shape(config: Config) -> Shape:
    return gemma2.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    bias = config.flag("attention_bias")
    norms = ("input_layernorm", "pre_feedforward_layernorm")
    return decoder(shape(config), Style(qkv_bias=bias, out_bias=bias, layer_norms=norms))
