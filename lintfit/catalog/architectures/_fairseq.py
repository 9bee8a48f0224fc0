"""Layers as fairseq's models name them: BART and its relatives, XGLM, BioGPT."""

from __future__ import annotations

from lintfit.catalog.architectures._blocks import Shape, attention, norm, plain_mlp
from lintfit.catalog.facts import Tensor


def layers_of(
    layer: str, numbers: Shape, layers: int, width: int, blocks: tuple[str, ...] = ("self_attn",)
) -> list[Tensor]:
    """``layers`` of them, with a bias everywhere. ``blocks``: of attention; ``width``: the MLP's."""
    found: list[Tensor] = []
    for block in blocks:
        found += attention(f"{layer}.{block}", numbers, layers, bias=True, out_bias=True, out="out_proj")
        found += norm(f"{layer}.{block}_layer_norm", numbers.hidden, layers, bias=True)
    found += plain_mlp(layer, numbers.hidden, width, layers, up="fc1", down="fc2")
    return [*found, *norm(f"{layer}.final_layer_norm", numbers.hidden, layers, bias=True)]
