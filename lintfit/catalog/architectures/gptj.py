"""GPT-J 6B: attention and MLP in parallel after one norm."""

from __future__ import annotations

from lintfit.catalog.architectures import gpt2
from lintfit.catalog.architectures._blocks import Shape, attention, embedding, head, norm, plain_mlp
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor
from lintfit.frozen import replace

REQUIRED = gpt2.REQUIRED
DEFAULTS = defaults("gptj")
CODE = Code(sdpa=NEVER, layer="GPTJBlock")


def shape(config: Config) -> Shape:
    numbers = gpt2.shape(config)
    rotary = config.size("rotary_dim", kind="head_dim", default=numbers.head_dim)
    return replace(numbers, parallel_residual=True, rotary_dim=rotary)


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, layer = shape(config), "transformer.h.{}"
    attn = attention(f"{layer}.attn", numbers, numbers.layers, out="out_proj")
    return around(numbers, attn)


def around(numbers: Shape, attn: list[Tensor]) -> tuple[Tensor, ...]:
    """Everything but the attention projections, which CodeGen fuses."""
    hidden, layers, layer = numbers.hidden, numbers.layers, "transformer.h.{}"
    return (
        *embedding("transformer.wte", numbers.vocab, hidden),
        *norm(f"{layer}.ln_1", hidden, layers, bias=True),
        *attn,
        *plain_mlp(f"{layer}.mlp", hidden, numbers.intermediate, layers, up="fc_in", down="fc_out"),
        *norm("transformer.ln_f", hidden, bias=True, where="final"),
        *head(numbers, bias=True),
    )
