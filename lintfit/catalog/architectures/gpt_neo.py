"""GPT-Neo 125M, 1.3B and 2.7B."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, attention, embedding, head, norm, plain_mlp, plain_shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor

REQUIRED = ("hidden_size", "num_layers", "num_heads", "vocab_size")
DEFAULTS = defaults("gpt_neo")
CODE = Code(sdpa=NEVER)


def shape(config: Config) -> Shape:
    return plain_shape(
        config,
        hidden="hidden_size",
        layers="num_layers",
        heads="num_heads",
        intermediate=config.size(
            "intermediate_size", kind="intermediate", default=4 * config.size("hidden_size", kind="hidden")
        ),
        activation=config.text("activation_function"),
        max_positions=config.size("max_position_embeddings", kind="positions"),
    )


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    hidden, layers, layer = numbers.hidden, numbers.layers, "transformer.h.{}"
    return (
        *embedding("transformer.wte", numbers.vocab, hidden),
        *embedding("transformer.wpe", numbers.max_positions or 0, hidden),
        *norm(f"{layer}.ln_1", hidden, layers, bias=True),
        *attention(f"{layer}.attn.attention", numbers, layers, out_bias=True, out="out_proj"),
        *norm(f"{layer}.ln_2", hidden, layers, bias=True),
        *plain_mlp(f"{layer}.mlp", hidden, numbers.intermediate, layers, up="c_fc", down="c_proj"),
        *norm("transformer.ln_f", hidden, bias=True, where="final"),
        *head(numbers),
    )
