"""ModernBERT with its masked-language-model head: rotary, a gated MLP, and windows in two layers of three."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, linear, norm, plain_shape
from lintfit.catalog.architectures._decoder import Names
from lintfit.catalog.architectures._layer_kinds import SLIDING, sliding
from lintfit.catalog.architectures._plain import Plain
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

EVERY = 3
"""One of so many layers attends to everything, from the first on (``global_attn_every_n_layers``)."""


def normalised(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``ModernBertConfig.__post_init__``: which layers have a window, where the config does not list them."""
    every = given.get("global_attn_every_n_layers", EVERY)
    return sliding(given, given.get("num_hidden_layers"), every, first=True)


def shape(config: Config) -> Shape:
    numbers = plain_shape(config, activation="hidden_activation")
    window = config.size("local_attention", kind="positions") // 2
    slides = config.strings("layer_types").count(SLIDING)
    return replace(
        numbers,
        gated=True,
        rotary_dim=numbers.head_dim,
        sliding_window=window if slides else None,
        sliding_layers=slides,
    )


def first_norms(config: Config, numbers: Shape) -> list[Tensor]:
    """In front of attention; the first layer has none."""
    return norm("model.layers.{}.attn_norm", numbers.hidden, numbers.layers - 1, bias=config.flag("norm_bias"))


def head(config: Config, numbers: Shape, name: str = "head") -> list[Tensor]:
    """The transform of this ``name`` before the vocabulary, and the projection."""
    found = [
        *linear(f"{name}.dense", numbers.hidden, numbers.hidden, bias=config.flag("classifier_bias"), where="head"),
        *norm(f"{name}.norm", numbers.hidden, bias=config.flag("norm_bias"), where="head"),
    ]
    bias = config.flag("decoder_bias")
    decoder = linear("decoder", numbers.vocab, numbers.hidden, bias=bias, role="lm_head", where="head")
    return [*found, *(decoder[1:] if numbers.tied else decoder)]


ROW = Plain(
    "An encoder with rotary positions",
    normalised=normalised,
    numbers=shape,
    names=Names(
        embedding="model.embeddings.tok_embeddings",
        embedding_norm="model.embeddings.norm",
        qkv=("attn.Wqkv",),
        out="attn.Wo",
        up=("mlp.Wi",),
        down="mlp.Wo",
        norms=("mlp_norm",),
        final="model.final_norm",
        order="more mixer norm mlp",
    ),
    norm_bias="norm_bias",
    head=head,
    more=(first_norms,),
)
