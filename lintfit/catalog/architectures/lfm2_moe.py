"""LFM 2 with routed experts (8B-A1B)."""

from __future__ import annotations

import functools

from lintfit.catalog.architectures import lfm2
from lintfit.catalog.architectures._blocks import decoder_shape
from lintfit.catalog.architectures._experts import QWEN3, behind_dense
from lintfit.frozen import replace

ROW = replace(
    lfm2.ROW,
    about="Experts behind dense layers",
    numbers=functools.partial(decoder_shape, qk_norm=True),
    experts=replace(
        QWEN3, layers=behind_dense, gate="feed_forward.gate", name="feed_forward.experts", gate_first=False
    ),
)
