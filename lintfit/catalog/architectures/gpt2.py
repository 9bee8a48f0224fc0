"""GPT-2, DistilGPT-2 and Cerebras-GPT."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, embedding, head, norm, plain_shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, since

REQUIRED = ("n_embd", "n_layer", "n_head", "vocab_size")
DEFAULTS = defaults("gpt2")
CODE = Code(sdpa=since(4, 42), flash_attention_2=since(4, 40), layer="GPT2Block")


def shape(config: Config) -> Shape:
    return plain_shape(
        config,
        hidden="n_embd",
        layers="n_layer",
        heads="n_head",
        intermediate=config.size("n_inner", kind="intermediate", default=4 * config.size("n_embd", kind="hidden")),
        activation=config.text("activation_function"),
        max_positions=config.size("n_positions", "n_ctx", kind="positions"),
    )


def conv1d(name: str, inputs: int, outputs: int, copies: int) -> list[Tensor]:
    """A linear layer that transformers stores transposed (in, out)."""
    return [
        Tensor(f"{name}.weight", (inputs, outputs), copies, "linear"),
        Tensor(f"{name}.bias", (outputs,), copies, "bias"),
    ]


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    hidden, layers = numbers.hidden, numbers.layers
    layer = "transformer.h.{}"
    return (
        *embedding("transformer.wte", numbers.vocab, hidden),
        *embedding("transformer.wpe", numbers.max_positions or 0, hidden),
        *norm(f"{layer}.ln_1", hidden, layers, bias=True),
        *conv1d(f"{layer}.attn.c_attn", hidden, 3 * hidden, layers),
        *conv1d(f"{layer}.attn.c_proj", hidden, hidden, layers),
        *norm(f"{layer}.ln_2", hidden, layers, bias=True),
        *conv1d(f"{layer}.mlp.c_fc", hidden, numbers.intermediate, layers),
        *conv1d(f"{layer}.mlp.c_proj", numbers.intermediate, hidden, layers),
        *norm("transformer.ln_f", hidden, bias=True, where="final"),
        *head(numbers),
    )
