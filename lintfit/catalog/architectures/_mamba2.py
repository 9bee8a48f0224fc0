"""Mamba 2's mixer: its numbers and its parameters, whatever a config calls them."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import linear, norm
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor
from lintfit.frozen import frozen


@frozen
class Mamba2:
    """Heads, elements of one, groups of heads that share their input and output, and elements of a state.

    ``kernel``: tokens that the convolution sees, ``chunk``: those that the scan takes at once. ``conv_bias``,
    ``in_bias``, ``out_bias``: of the convolution and of the projections in and out. ``normed``: whether a norm stands
    in front of the projection out.
    """

    heads: int
    dim: int
    groups: int
    state: int
    kernel: int
    chunk: int
    conv_bias: bool
    in_bias: bool
    out_bias: bool
    normed: bool = True

    @property
    def width(self) -> int:
        """Elements of all heads together."""
        return self.heads * self.dim

    @property
    def shared(self) -> int:
        """Elements of what goes into the states, or comes out of them, for all groups."""
        return self.groups * self.state

    @property
    def repeated(self) -> int:
        """The same for all heads."""
        return self.heads * self.state

    @property
    def states(self) -> int:
        """Elements of all heads' states."""
        return self.width * self.state

    @property
    def mixed(self) -> int:
        """Channels of the convolution."""
        return self.width + 2 * self.shared


def mixer(config: Config, width: int, *, out_bias: bool, normed: bool = True) -> Mamba2:
    """The numbers of a config with the keys of Bamba's relatives; ``width``: of all heads together."""
    heads = config.size("mamba_n_heads", kind="heads")
    if width % heads:
        raise config.error("mamba_n_heads", f"must divide what all heads have together ({width})")
    return Mamba2(
        heads=heads,
        dim=width // heads,
        groups=config.size("mamba_n_groups"),
        state=config.size("mamba_d_state"),
        kernel=config.size("mamba_d_conv"),
        chunk=config.size("mamba_chunk_size"),
        conv_bias=config.flag("mamba_conv_bias"),
        in_bias=config.flag("mamba_proj_bias"),
        out_bias=out_bias,
        normed=normed,
    )


def tensors(shape: Mamba2, name: str, hidden: int, copies: int) -> list[Tensor]:
    """One projection in, a short convolution, decay, step and skip of each head, a norm, a projection out."""
    convolved = [Tensor(f"{name}.conv1d.bias", (shape.mixed,), copies, "bias")] if shape.conv_bias else []
    return [
        *linear(f"{name}.in_proj", shape.width + shape.mixed + shape.heads, hidden, copies, bias=shape.in_bias),
        *linear(f"{name}.out_proj", hidden, shape.width, copies, bias=shape.out_bias),
        Tensor(f"{name}.conv1d.weight", (shape.mixed, 1, shape.kernel), copies, "conv"),
        *convolved,
        Tensor(f"{name}.dt_bias", (shape.heads,), copies, "bias"),
        Tensor(f"{name}.A_log", (shape.heads,), copies, "other"),
        Tensor(f"{name}.D", (shape.heads,), copies, "other"),
        *(norm(f"{name}.norm", shape.width, copies) if shape.normed else []),
    ]
