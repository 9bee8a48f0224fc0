"""What Granite's relatives have beside its layers."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, decoder_shape, linear
from lintfit.catalog.architectures._experts import Experts, moe_of, routed
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

EXPERTS = Experts(("num_local_experts",), gate="block_sparse_moe.router", name="block_sparse_moe.experts")


def with_shared_mlp(config: Config) -> Shape:
    """The numbers of experts beside an MLP that all tokens pass, of ``shared_intermediate_size`` or none."""
    numbers = decoder_shape(config)
    moe = moe_of(EXPERTS, config, numbers)
    shared = config.count("shared_intermediate_size", kind="intermediate")
    return replace(numbers, moe=replace(moe, shared_intermediate=shared))


def experts(config: Config, numbers: Shape) -> list[Tensor]:
    """Routed experts, where there are some."""
    if numbers.moe is None:
        return []
    return routed(EXPERTS, "model.layers.{}", replace(numbers, moe=replace(numbers.moe, shared_intermediate=0)))


def shared_mlp(config: Config, numbers: Shape) -> list[Tensor]:
    """The MLP of ``shared_intermediate_size``, whose gate and up projections are one."""
    width, name = config.count("shared_intermediate_size", kind="intermediate"), "model.layers.{}.shared_mlp"
    if not width:
        return []
    return [
        *linear(f"{name}.input_linear", 2 * width, numbers.hidden, numbers.layers),
        *linear(f"{name}.output_linear", numbers.hidden, width, numbers.layers),
    ]
