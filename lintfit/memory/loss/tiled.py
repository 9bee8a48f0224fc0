"""Losses that never hold all logits: TRL's, tile by tile, and Liger's, chunk by chunk.

Sources: TRL ``kernels/chunked_logprob.py``, Liger ``ops/fused_linear_cross_entropy.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from lintfit.frozen import frozen
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.form import Table
from lintfit.memory.activations.replay import backward
from lintfit.memory.activations.tape import LOGITS, Extent, Scratch, Var, once
from lintfit.memory.loss.head import Form

TRL_TOKENS, TRL_VOCABULARY = 4096, 32768
"""TRL's tile: ``TOKEN_CHUNK_SIZE`` and ``_CHUNKED_LOGPROB_CHUNK_SIZE``."""


class _Passes(NamedTuple):
    """What the loss's forward and its backward allocate, and bytes of the head's gradient."""

    forward: tuple[Scratch, ...]
    backward: tuple[Scratch, ...]
    weight: int


def tiled(t: Layer, y: Var, vocab: int, path: str) -> Form:
    """Such a loss as one node behind the final norm; ``path``: its name in :data:`TILED`."""
    loss = TILED[path](t, y, vocab)
    out = t.constant(1, 4, True)
    t.op(out, (y,), (y,), temp=loss.backward, weights=(loss.weight,) if loss.weight else ())
    table = Table()
    own = backward(t, out, table)
    return Form(
        table=table,
        logits=(tuple([table.number(LOGITS, size, per, False) for size, per in loss.forward]),),
        states=(table.storage(y.storage),),
        hidden=(),
        capped=(),
        loss=None,
        head=own,
        weights=t.weights,
    )


@frozen
class _Tile:
    """The tokens of TRL's tile."""

    most: int
    per: Extent

    def __call__(self, batch: int, seq: int) -> int:
        return min(self.per(batch, seq), self.most)


def _trl(t: Layer, y: Var, vocab: int) -> _Passes:
    """TRL's chunked loss: one tile of logits, and in the backward fp32 gradients of the states and the head.

    fp32 states and weights get these gradients as they are, others a copy. Under autocast fp32 states and weights are
    cast tile by tile; both passes name the states' tile and the backward the weights', so that the next one of these is
    made before the last one goes.
    """
    recipe, h = t.recipe, t.facts.hidden
    trains, wide = recipe.trains("lm_head"), recipe.weights == 4
    item = 2 if recipe.autocast else y.item
    tile: list[Scratch] = [(TRL_VOCABULARY * item, _Tile(TRL_TOKENS, y.per))]
    chunk = min(vocab, TRL_VOCABULARY) * h * 2 if recipe.autocast and wide else 0
    if recipe.autocast and y.item == 4:
        tile.append((h * 2, _Tile(2 * TRL_TOKENS, y.per)))
    back = [*tile, (chunk * (2 if vocab > TRL_VOCABULARY else 1), once)]
    if y.item != 4:
        back.append(y.scratch(4))
    if trains and not wide:
        back.append((4 * h * vocab, once))
    return _Passes((*tile, (chunk, once)), tuple(back), h * vocab * recipe.weights if trains else 0)


@frozen
class _Chunk:
    """The tokens of Liger's chunk: the power of two from a ``parts``-th of all tokens on."""

    parts: int
    per: Extent

    def __call__(self, batch: int, seq: int) -> int:
        tokens = self.per(batch, seq)
        return min(1 << max(0, (-(-tokens // self.parts) - 1).bit_length()), tokens)


def _liger(t: Layer, y: Var, vocab: int) -> _Passes:
    """Liger's fused linear cross-entropy: gradients are made in the forward, chunk by chunk, and only scaled later.

    The chunk is ``next_power_of_2(ceil(tokens / ceil(vocab / hidden)))`` tokens; its logits are held in the
    head's dtype and once more in fp32 while they become their own gradient.
    """
    h = t.facts.hidden
    item = 2 if t.recipe.autocast else y.item
    weight = h * vocab * t.recipe.weights if t.recipe.trains("lm_head") else 0
    chunk = vocab * (item + 4 if item == 2 else 4), _Chunk(-(-vocab // h), y.per)
    return _Passes((chunk, y.scratch(y.item), (2 * weight, once)), ((weight, once),), weight)


TILED: Mapping[str, Callable[[Layer, Var, int], _Passes]] = {"chunked": _trl, "liger": _liger}
"""The losses by what a spec calls them."""
