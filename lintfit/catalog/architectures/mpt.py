"""MPT 7B and 30B: ALiBi, no biases."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, embedding, head, linear, norm, plain_mlp, plain_shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor

REQUIRED = ("d_model", "n_heads", "n_layers", "vocab_size")
DEFAULTS = defaults("mpt")
CODE = Code(sdpa=NEVER, flash_attention_2=NEVER, layer="MptBlock")


def shape(config: Config) -> Shape:
    return plain_shape(
        config,
        hidden="d_model",
        layers="n_layers",
        heads="n_heads",
        intermediate=config.size("expansion_ratio") * config.size("d_model", kind="hidden"),
        activation="gelu",
        max_positions=config.count("max_seq_len", kind="positions") or None,
    )


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers = shape(config)
    hidden, layers, block = numbers.hidden, numbers.layers, "transformer.blocks.{}"
    return (
        *embedding("transformer.wte", numbers.vocab, hidden),
        *norm(f"{block}.norm_1", hidden, layers),
        *linear(f"{block}.attn.Wqkv", 3 * hidden, hidden, layers),
        *linear(f"{block}.attn.out_proj", hidden, hidden, layers),
        *norm(f"{block}.norm_2", hidden, layers),
        *plain_mlp(f"{block}.ffn", hidden, numbers.intermediate, layers, up="up_proj", down="down_proj", bias=False),
        *norm("transformer.norm_f", hidden, where="final"),
        *head(numbers),
    )
