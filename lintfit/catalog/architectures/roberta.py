"""RoBERTa and XLM-RoBERTa with their masked-language-model head."""

from __future__ import annotations

from lintfit.catalog.architectures import bert
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, since

REQUIRED = bert.REQUIRED
DEFAULTS = defaults("roberta")
CODE = Code(sdpa=since(4, 45), flash_attention_2=since(5, 0), layer="RobertaLayer")


def shape(config: Config) -> Shape:
    return bert.shape(config)


def tensors(config: Config, name: str = "roberta") -> tuple[Tensor, ...]:
    parts = ("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias")
    return (*bert.encoder(config, name), *bert.masked_head(bert.shape(config), *parts))
