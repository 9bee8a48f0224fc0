"""DiffLlama: Llama with differential attention, whose two halves of values are weighed by four vectors a layer."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, decoder_shape
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

LAMBDAS = ("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2")


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config)
    if numbers.kv_heads % 2:
        raise config.error("num_key_value_heads", "must be even")
    return numbers


def lambdas(config: Config, numbers: Shape) -> list[Tensor]:
    """The vectors."""
    name = "model.layers.{}.self_attn"
    return [Tensor(f"{name}.{part}", (numbers.head_dim,), numbers.layers, "other") for part in LAMBDAS]


ROW = Plain("Llama and four vectors", numbers=shape, mlp_bias=False, more=(lambdas,))
