"""Layers as fairseq's models name them: BART and its relatives, XGLM, BioGPT."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, attention, norm, plain_mlp
from lintfit.catalog.architectures._decoder import Names
from lintfit.catalog.config import Config
from lintfit.catalog.facts import Tensor

POSITION_OFFSET = 2
"""Rows that a table of positions has more than positions (``OPTLearnedPositionalEmbedding``, and the buffers of
``XGLMSinusoidalPositionalEmbedding`` and ``M2M100SinusoidalPositionalEmbedding``)."""

NAMES = Names(
    out="self_attn.out_proj",
    up=("fc1",),
    down="fc2",
    norms=("self_attn_layer_norm", "final_layer_norm"),
    final="model.layer_norm",
    order="mixer norm mlp norm",
)


def block(layer: str, numbers: Shape, layers: int, name: str) -> list[Tensor]:
    """Attention of this name in ``layers`` layers, and its norm."""
    return [
        *attention(f"{layer}.{name}", numbers, layers, bias=True, out_bias=True, out="out_proj"),
        *norm(f"{layer}.{name}_layer_norm", numbers.hidden, layers, bias=True),
    ]


def cross_attention(config: Config, numbers: Shape) -> list[Tensor]:
    """XGLM's, which none of the published models has."""
    asked = config.flag("add_cross_attention")
    return block("model.layers.{}", numbers, numbers.layers, "encoder_attn") if asked else []


def layers_of(
    layer: str, numbers: Shape, layers: int, width: int, blocks: tuple[str, ...] = ("self_attn",)
) -> list[Tensor]:
    """``layers`` of them, with a bias everywhere. ``blocks``: of attention; ``width``: the MLP's."""
    found = [tensor for name in blocks for tensor in block(layer, numbers, layers, name)]
    found += plain_mlp(layer, numbers.hidden, width, layers, up="fc1", down="fc2")
    return [*found, *norm(f"{layer}.final_layer_norm", numbers.hidden, layers, bias=True)]
