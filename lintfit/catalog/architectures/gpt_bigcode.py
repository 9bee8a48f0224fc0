"""StarCoder, SantaCoder, WizardCoder 15B: multi-query attention in a GPT-2 frame."""

from __future__ import annotations

from lintfit.catalog.architectures import gpt2
from lintfit.catalog.architectures._blocks import Shape, embedding, head, linear, norm, plain_mlp
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

REQUIRED = gpt2.REQUIRED
DEFAULTS = defaults("gpt_bigcode")


def shape(config: Config) -> Shape:
    numbers = gpt2.shape(config)
    return replace(numbers, kv_heads=1) if config.flag("multi_query") else numbers


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    hidden, layers, layer = numbers.hidden, numbers.layers, "transformer.h.{}"
    fused = numbers.query + 2 * numbers.key_value
    return (
        *embedding("transformer.wte", numbers.vocab, hidden),
        *embedding("transformer.wpe", numbers.max_positions or 0, hidden),
        *norm(f"{layer}.ln_1", hidden, layers, bias=True),
        *linear(f"{layer}.attn.c_attn", fused, hidden, layers, bias=True),
        *linear(f"{layer}.attn.c_proj", hidden, hidden, layers, bias=True),
        *norm(f"{layer}.ln_2", hidden, layers, bias=True),
        *plain_mlp(f"{layer}.mlp", hidden, numbers.intermediate, layers, up="c_fc", down="c_proj"),
        *norm("transformer.ln_f", hidden, bias=True, where="final"),
        *head(numbers),
    )
