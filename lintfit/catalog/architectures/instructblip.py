"""InstructBLIP: BLIP-2 whose queries stand beside the instruction, and Vicuna or Flan-T5."""

from __future__ import annotations

from lintfit.catalog.architectures import _qformer
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

REQUIRED, DEFAULTS = _qformer.REQUIRED, _qformer.DEFAULTS
language = _qformer.language
text_of = _qformer.text_of


def shape(config: Config) -> Shape:
    return _qformer.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    return _qformer.tensors(config, reads=True)
