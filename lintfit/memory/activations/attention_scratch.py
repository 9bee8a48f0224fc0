"""Room that the fused attention kernels take beside their tensors in the backward pass, on A100 and newer GPUs."""

from __future__ import annotations

from lintfit.frozen import frozen
from lintfit.memory.activations.tape import Chunks, Larger, Scratch, Var, tokens

FLASH_ROWS = 128
"""Queries that FlashAttention's backward fills every sequence up to."""

FLASH_COLUMNS = 32
"""Elements that its heads are rounded up to a multiple of."""

HALF_TILES = {64: (64, 64), 128: (128, 128), 0: (128, 64)}
FULL_TILES = {64: (64, 64), 128: (128, 64), 0: (128, 64)}
"""Rows and columns of the memory-efficient kernel's tiles by the widest head, 0 for any, in half precision and in fp32
(torch ``mem_eff_attention/kernels/cutlassB.h:dispatch_cutlassB_bf16_sm80``)."""

SPLITS = 200
"""Parts of keys, with all heads and sequences, that the memory-efficient kernel stages gradients of at most."""


def flash_scratch(heads: int, dim: int) -> list[Scratch]:
    """FlashAttention's fp32 sums of the queries' gradient and one fp32 number a row (``flash_api.cpp:mha_bwd``)."""
    each, rows = FLASH_ROWS * heads * 4, Chunks(FLASH_ROWS)
    return [(each * _up(dim, FLASH_COLUMNS), rows), (each, rows)]


def efficient_scratch(q: Var, out: Var, heads: int, dim: int) -> tuple[Scratch, ...]:
    """The memory-efficient kernel's: one fp32 number a row, and fp32 tiles of the queries' gradient with a lock each.

    Half-precision heads wider than 128 have a block of keys' and values' gradients as well. In fp32 the number is
    summed up from a whole product before the tiles are there (``attention_backward.cu:_efficient_attention_backward``,
    ``kernel_backward.h:workspace_size``).
    """
    value = out.width // heads
    widest = max(dim, value)
    tiles = HALF_TILES if q.item == 2 else FULL_TILES
    rows, columns = tiles[64 if widest <= 64 else 128 if widest <= 128 else 0]
    number = heads * 4, tokens
    sums = heads * -(-dim // columns) * (rows * columns * 4 + 16), Chunks(rows)
    if q.item == 4:
        return number, (1, Larger(sums, (out.width * 4 + heads * 4, out.per)))
    if widest <= 128:
        return number, sums
    staged = heads * columns * (_up(dim, rows) + _up(value, rows)) * 4
    return number, sums, (staged, _Splits(columns, heads))


@frozen
class _Splits:
    """Parts that the keys of all sequences come in, so many columns each at least."""

    columns: int
    heads: int

    def __call__(self, batch: int, seq: int) -> int:
        return batch * max(1, min(-(-seq // self.columns), SPLITS // (batch * self.heads)))


def _up(size: int, step: int) -> int:
    """The next multiple."""
    return -(-size // step) * step
