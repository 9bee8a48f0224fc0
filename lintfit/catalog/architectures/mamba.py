"""Mamba: layers of its mixer and nothing else."""

from __future__ import annotations

from lintfit.catalog.architectures import _mamba1
from lintfit.catalog.architectures._blocks import Shape, without_attention
from lintfit.catalog.architectures._decoder import Names
from lintfit.catalog.architectures._mamba1 import Mamba1
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import Config
from lintfit.catalog.facts import NEVER, Code, Tensor

NAMES = Names(
    layer="backbone.layers.{}",
    embedding="backbone.embeddings",
    down="",
    norms=("norm",),
    final="backbone.norm_f",
)


def shape(config: Config) -> Shape:
    return without_attention(config, mixer(config).width)


def mixer(config: Config) -> Mamba1:
    """The numbers of a layer. A stated ``intermediate_size`` counts in the place of ``expand``."""
    hidden = config.size("hidden_size", kind="hidden")
    return Mamba1(
        width=config.size("intermediate_size", kind="intermediate", default=config.size("expand") * hidden),
        state=config.size("state_size"),
        rank=_mamba1.rank_of(config, "time_step_rank", hidden),
        kernel=config.size("conv_kernel"),
        conv_bias=config.flag("use_conv_bias"),
        bias=config.flag("use_bias"),
        norms=_mamba1.BARE if config.get("model_type") == "falcon_mamba" else "",
    )


def mixers(config: Config, numbers: Shape) -> list[Tensor]:
    """The parameters of all layers' mixers."""
    return _mamba1.tensors(mixer(config), "backbone.layers.{}.mixer", numbers.hidden, numbers.layers)


ROW = Plain(
    "Mamba 1's mixer alone",
    required=("hidden_size", "num_hidden_layers"),
    numbers=shape,
    names=NAMES,
    mixer=mixers,
    code=Code(sdpa=NEVER, flash_attention_2=NEVER, lora_refused_since="0.16"),
)
