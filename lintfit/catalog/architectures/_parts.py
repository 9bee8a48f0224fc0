"""What layers of some types have beside attention, MLP and norms."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, linear, norm
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

LAYER = "model.layers.{}"


def sinks(config: Config, numbers: Shape) -> list[Tensor]:
    """One number for each head of every layer."""
    return [Tensor(f"{LAYER}.self_attn.sinks", (numbers.heads,), numbers.layers, "other")]


def gates(config: Config, numbers: Shape) -> list[Tensor]:
    """AFMoE's gates of what attention gives."""
    return linear(f"{LAYER}.self_attn.gate_proj", numbers.query, numbers.hidden, numbers.layers)


def norm_behind_experts(config: Config, numbers: Shape) -> list[Tensor]:
    """A.X K1's norm of what the experts give."""
    assert numbers.moe is not None
    return norm(f"{LAYER}.mlp.post_mlp_layernorm", numbers.hidden, numbers.moe.layers)


def norms_before_projections(config: Config, numbers: Shape) -> list[Tensor]:
    """BitNet's norms in front of both projections back to the stream."""
    return [
        *norm(f"{LAYER}.self_attn.attn_sub_norm", numbers.hidden, numbers.layers),
        *norm(f"{LAYER}.mlp.ffn_sub_norm", numbers.intermediate, numbers.layers),
    ]


def norms_behind_where_asked(config: Config, numbers: Shape) -> list[Tensor]:
    """HyperCLOVA X's norms behind attention and MLP."""
    names = ("post_norm1", "post_norm2") if config.flag("use_post_norm") else ()
    return [tensor for name in names for tensor in norm(f"{LAYER}.{name}", numbers.hidden, numbers.layers)]


def learnt_activation(config: Config, numbers: Shape) -> list[Tensor]:
    """The two numbers of Apertus's xIELU."""
    names = ("alpha_p", "alpha_n") if numbers.activation == "xielu" else ()
    return [Tensor(f"{LAYER}.mlp.act_fn.{name}", (1,), numbers.layers, "other") for name in names]
