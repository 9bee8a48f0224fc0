"""Mamba 1's mixer: its numbers and its parameters, whatever a config calls them."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import linear, norm
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor
from lintfit.frozen import frozen

RANK_SHARE = 16
"""The step is projected from so many times fewer elements than the hidden size, where a config says ``auto``."""


@frozen
class Mamba1:
    """Channels, elements of the state of each, and elements that the step is projected from.

    ``kernel``: tokens that the convolution sees. ``conv_bias``, ``bias``: of the convolution, and of the projections in
    and out. ``norms``: of the step, of what goes into the states and of what comes out of them: none, with weights, or
    without.
    """

    width: int
    state: int
    rank: int
    kernel: int
    conv_bias: bool
    bias: bool
    norms: str = ""

    @property
    def states(self) -> int:
        """Elements of the states of all channels."""
        return self.width * self.state

    @property
    def selected(self) -> int:
        """Elements of the step, and of what goes into the states and comes out of them."""
        return self.rank + 2 * self.state


def rank_of(config: Config, key: str, hidden: int) -> int:
    """Elements that the step is projected from."""
    return -(-hidden // RANK_SHARE) if config.get(key) in (None, "auto") else config.size(key)


def under_prefix(config: Config, norms: str = "") -> Mamba1:
    """The numbers of a mixer among other layers, whose keys begin with ``mamba_`` (Jamba, Zamba)."""
    hidden = config.size("hidden_size", kind="hidden")
    return Mamba1(
        width=config.size("mamba_expand") * hidden,
        state=config.size("mamba_d_state"),
        rank=rank_of(config, "mamba_dt_rank", hidden),
        kernel=config.size("mamba_d_conv"),
        conv_bias=config.flag("mamba_conv_bias"),
        bias=config.flag("mamba_proj_bias"),
        norms=norms,
    )


def tensors(shape: Mamba1, name: str, hidden: int, copies: int) -> list[Tensor]:
    """Projections in and out, a short convolution, step, decay and skip of each channel."""
    convolved = [Tensor(f"{name}.conv1d.bias", (shape.width,), copies, "bias")] if shape.conv_bias else []
    normed = (("dt", shape.rank), ("b", shape.state), ("c", shape.state)) if shape.norms == WEIGHED else ()
    return [
        Tensor(f"{name}.A_log", (shape.width, shape.state), copies, "other"),
        Tensor(f"{name}.D", (shape.width,), copies, "other"),
        Tensor(f"{name}.conv1d.weight", (shape.width, 1, shape.kernel), copies, "conv"),
        *convolved,
        *linear(f"{name}.in_proj", 2 * shape.width, hidden, copies, bias=shape.bias),
        *linear(f"{name}.x_proj", shape.selected, shape.width, copies),
        *linear(f"{name}.dt_proj", shape.width, shape.rank, copies, bias=True),
        *linear(f"{name}.out_proj", hidden, shape.width, copies, bias=shape.bias),
        *(tensor for part, size in normed for tensor in norm(f"{name}.{part}_layernorm", size, copies)),
    ]


WEIGHED = "weighed"
"""Norms with weights (Jamba)."""

BARE = "bare"
"""Norms without weights (Falcon Mamba)."""
