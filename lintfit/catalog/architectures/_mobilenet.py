"""MobileNet v5, the image encoder of Gemma 3n, as timm 1.0 builds it (``mobilenetv5_300m_enc``)."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.catalog.architectures._blocks import norm
from lintfit.catalog.facts import Tensor
from lintfit.frozen import replace

OUT = 2048
"""Channels of what it gives."""
STEM = 64
EDGES = ((64, 256, 128), (128, 512, 128), (128, 512, 128))
"""Channels into, inside and out of the first stage's blocks."""
FUSED = (640 + 1280, 3840)
"""Channels that the last part takes of the two last stages, and has inside."""


def tensors(name: str) -> list[Tensor]:
    """All of it."""
    found = [
        *_conv(f"{name}.conv_stem.conv", 3, STEM, 3),
        Tensor(f"{name}.conv_stem.conv.bias", (STEM,), 1, "bias"),
        *norm(f"{name}.conv_stem.bn", STEM),
    ]
    for number, (before, wide, after) in enumerate(EDGES):
        block = f"{name}.blocks.0.{number}"
        found += [*_conv(f"{block}.conv_exp", before, wide, 3), *norm(f"{block}.bn1", wide)]
        found += [*_conv(f"{block}.conv_pwl", wide, after, 1), *norm(f"{block}.bn2", after)]
    found += _inverted(f"{name}.blocks.1.0", 128, 768, 256, start=3, middle=5)
    for number, side in enumerate((5, 3, 5, 3), start=1):
        found += _inverted(f"{name}.blocks.1.{number}", 256, 1024, 256, start=side)
    found += _inverted(f"{name}.blocks.2.0", 256, 1536, 640, start=5, middle=5)
    for number in range(1, 8):
        found += _inverted(f"{name}.blocks.2.{number}", 640, 2560, 640, start=5)
    found += _inverted(f"{name}.blocks.2.8", 640, 640, 640)
    for number in range(9, 37, 2):
        found += _attention(f"{name}.blocks.2.{number}", 640, 768, 64, shrinks=True)
        found += _inverted(f"{name}.blocks.2.{number + 1}", 640, 1280, 640)
    found += _inverted(f"{name}.blocks.3.0", 640, 3840, 1280, start=5, middle=5)
    for number in range(1, 39, 2):
        found += _attention(f"{name}.blocks.3.{number}", 1280, 1536, 96, shrinks=False)
        found += _inverted(f"{name}.blocks.3.{number + 1}", 1280, 2560, 1280)
    wide, inner = FUSED
    found += [*_pointwise(f"{name}.msfa.ffn.pw_exp", wide, inner), *_pointwise(f"{name}.msfa.ffn.pw_proj", inner, OUT)]
    return [replace(tensor, where="vision") for tensor in (*found, *norm(f"{name}.msfa.norm", OUT))]


def _conv(name: str, before: int, after: int, side: int) -> list[Tensor]:
    return [Tensor(f"{name}.weight", (after, before, side, side), 1, "conv")]


def _pointwise(name: str, before: int, after: int) -> list[Tensor]:
    """A product of channels and its norm."""
    return [*_conv(f"{name}.conv", before, after, 1), *norm(f"{name}.bn", after)]


def _depthwise(name: str, width: int, side: int) -> list[Tensor]:
    """A convolution of each channel by itself and its norm; none where it has no side."""
    return [*_conv(f"{name}.conv", 1, width, side), *norm(f"{name}.bn", width)] if side else []


def _inverted(name: str, before: int, wide: int, after: int, *, start: int = 0, middle: int = 0) -> Iterator[Tensor]:
    """timm's ``UniversalInvertedResidual``."""
    yield from _depthwise(f"{name}.dw_start", before, start)
    yield from _pointwise(f"{name}.pw_exp", before, wide)
    yield from _depthwise(f"{name}.dw_mid", wide, middle)
    yield from _pointwise(f"{name}.pw_proj", wide, after)
    yield Tensor(f"{name}.layer_scale.gamma", (after,), 1, "other")


def _attention(name: str, width: int, queries: int, keys: int, *, shrinks: bool) -> Iterator[Tensor]:
    """timm's ``MobileAttention``, whose keys and values have one head; ``shrinks``: of a smaller picture."""
    yield from norm(f"{name}.norm", width)
    yield from _conv(f"{name}.attn.query.proj", width, queries, 1)
    for which in ("key", "value"):
        if shrinks:
            yield from _conv(f"{name}.attn.{which}.down_conv", 1, width, 3)
            yield from norm(f"{name}.attn.{which}.norm", width)
        yield from _conv(f"{name}.attn.{which}.proj", width, keys, 1)
    yield from _conv(f"{name}.attn.output.proj", queries, width, 1)
    yield Tensor(f"{name}.layer_scale.gamma", (width,), 1, "other")
