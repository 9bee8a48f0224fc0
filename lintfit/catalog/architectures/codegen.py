"""CodeGen 350M to 16B: GPT-J with one projection for query, key and value."""

from __future__ import annotations

from lintfit.catalog.architectures import gptj
from lintfit.catalog.architectures._blocks import Shape, linear
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor

REQUIRED = gptj.REQUIRED
DEFAULTS = defaults("codegen")
CODE = Code(sdpa=NEVER, flash_attention_2=NEVER)


def shape(config: Config) -> Shape:
    return gptj.shape(config)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, layer = shape(config), "transformer.h.{}.attn"
    attn = [
        *linear(f"{layer}.qkv_proj", 3 * numbers.hidden, numbers.hidden, numbers.layers),
        *linear(f"{layer}.out_proj", numbers.hidden, numbers.hidden, numbers.layers),
    ]
    return gptj.around(numbers, attn)
