"""MiniCPM 1B, 2B and 4, by the code in their repositories: llama's shape with scaled residuals."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, decoder_shape, gated_mlp, linear, router
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Code, MoE, Tensor
from lintfit.frozen import replace


def shape(config: Config) -> Shape:
    numbers = decoder_shape(config)
    experts = config.count("num_experts", kind="experts")
    if not experts:
        return numbers
    top_k = config.size("num_experts_per_tok", kind="experts")
    return replace(numbers, moe=MoE(experts, top_k, numbers.intermediate, numbers.layers))


def mlp(config: Config, numbers: Shape) -> list[Tensor]:
    """The MLP, or experts that are a module each."""
    name, hidden, width = "model.layers.{}.mlp", numbers.hidden, numbers.intermediate
    if numbers.moe is None:
        return gated_mlp(name, hidden, width, numbers.layers)
    copies = numbers.layers * numbers.moe.experts
    return [
        *router(f"{name}.gate", numbers.moe.experts, hidden, numbers.layers),
        *linear(f"{name}.experts.{{}}.w1", width, hidden, copies),
        *linear(f"{name}.experts.{{}}.w2", hidden, width, copies),
        *linear(f"{name}.experts.{{}}.w3", width, hidden, copies),
    ]


ROW = Plain(
    "Llama with experts or without",
    own={"tie_word_embeddings": True, "num_experts": 0, "num_experts_per_tok": 2},  # configuration_minicpm.py
    like="llama",
    numbers=shape,
    mlp=mlp,
    code=Code(chooses_kernel=False),
)
