"""Mamba: layers of its mixer and nothing else."""

from __future__ import annotations

from lintfit.catalog.architectures import _mamba1
from lintfit.catalog.architectures._blocks import Shape, embedding, head, norm, without_attention
from lintfit.catalog.architectures._mamba1 import Mamba1
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor

REQUIRED = ("hidden_size", "num_hidden_layers")
DEFAULTS = defaults("mamba")
CODE = Code(sdpa=NEVER, flash_attention_2=NEVER, lora_refused_since="0.16")


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


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, name = shape(config), "backbone.layers.{}"
    hidden, layers = numbers.hidden, numbers.layers
    return (
        *embedding("backbone.embeddings", numbers.vocab, hidden),
        *_mamba1.tensors(mixer(config), f"{name}.mixer", hidden, layers),
        *norm(f"{name}.norm", hidden, layers),
        *norm("backbone.norm_f", hidden, where="final"),
        *head(numbers),
    )
