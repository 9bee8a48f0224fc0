"""M2M-100 and NLLB-200: BART with sines of a buffer for positions, and norms at the end of each half."""

from __future__ import annotations

from lintfit.catalog.architectures import _bart
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, since

POSITION_OFFSET = 2
"""The buffer has two rows more than the model positions (``M2M100SinusoidalPositionalEmbedding``)."""
REQUIRED = _bart.REQUIRED
DEFAULTS = defaults("m2m_100")
CODE = Code(sdpa=since(4, 45), flash_attention_2=since(4, 40))


def shape(config: Config) -> Shape:
    return _bart.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return _bart.tensors(config, offset=None, first=False, last=True)
