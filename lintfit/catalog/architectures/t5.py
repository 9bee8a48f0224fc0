"""T5, T5 1.1, Flan-T5, UL2, CodeT5: encoder and decoder."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, embedding, head, linear, norm
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor, since

REQUIRED = ("d_model", "d_ff", "d_kv", "num_layers", "num_heads", "vocab_size")
DEFAULTS = defaults("t5", tie_word_embeddings=True)
CODE = Code(sdpa=since(5, 15), flash_attention_2=NEVER, chooses_kernel=False, layer="T5Block")
NOTES = (
    "the embedding as output layer (transformers 5; transformers 4 has one of its own for T5 1.1, Flan-T5 and mT5)",
)
POSITIONS_IN_EVERY_LAYER = False
"""T5 and mT5 learn relative positions in the first layer of each half only."""


def halves(config: Config) -> tuple[int, int]:
    """Encoder and decoder layers."""
    encoder = config.size("num_layers", kind="layers")
    return encoder, config.size("num_decoder_layers", kind="layers", default=encoder)


def shape(config: Config) -> Shape:
    heads = config.size("num_heads", kind="heads")
    feed_forward = config.text("feed_forward_proj")
    return Shape(
        hidden=config.size("d_model", kind="hidden"),
        layers=sum(halves(config)),
        heads=heads,
        kv_heads=heads,
        head_dim=config.size("d_kv", kind="head_dim"),
        intermediate=config.size("d_ff", kind="intermediate"),
        vocab=config.size("vocab_size", kind="vocab"),
        tied=True,
        gated=feed_forward.startswith("gated-"),
        norm="rmsnorm",
        activation=feed_forward.removeprefix("gated-"),
    )


def attention(name: str, numbers: Shape, copies: int) -> list[Tensor]:
    """T5's projections, without biases."""
    return [
        *linear(f"{name}.q", numbers.query, numbers.hidden, copies),
        *linear(f"{name}.k", numbers.query, numbers.hidden, copies),
        *linear(f"{name}.v", numbers.query, numbers.hidden, copies),
        *linear(f"{name}.o", numbers.hidden, numbers.query, copies),
    ]


def half(config: Config, numbers: Shape, name: str, layers: int, everywhere: bool) -> list[Tensor]:
    """The encoder, or the decoder with its attention to the encoder."""
    block, cross = f"{name}.block.{{}}.layer", name == "decoder"
    first = f"{name}.block.{{}}" if everywhere else f"{name}.block.0"
    buckets = (config.size("relative_attention_num_buckets"), numbers.heads)
    mlp, width = f"{block}.{2 if cross else 1}", numbers.intermediate
    up = ("wi_0", "wi_1") if numbers.gated else ("wi",)
    found = attention(f"{block}.0.SelfAttention", numbers, layers)
    positions = f"{first}.layer.0.SelfAttention.relative_attention_bias.weight"
    found.append(Tensor(positions, buckets, layers if everywhere else 1, "embedding", "layer"))
    if cross:
        found += attention(f"{block}.1.EncDecAttention", numbers, layers)
    for projection in up:
        found += linear(f"{mlp}.DenseReluDense.{projection}", width, numbers.hidden, layers)
    found += linear(f"{mlp}.DenseReluDense.wo", numbers.hidden, width, layers)
    for part in range(3 if cross else 2):
        found += norm(f"{block}.{part}.layer_norm", numbers.hidden, layers)
    return found + norm(f"{name}.final_layer_norm", numbers.hidden, where="final")


def tensors(config: Config, everywhere: bool = POSITIONS_IN_EVERY_LAYER) -> tuple[Tensor, ...]:
    numbers = shape(config)
    encoder, decoder = halves(config)
    return (
        *embedding("shared", numbers.vocab, numbers.hidden),
        *half(config, numbers, "encoder", encoder, everywhere),
        *half(config, numbers, "decoder", decoder, everywhere),
        *head(numbers),
    )
