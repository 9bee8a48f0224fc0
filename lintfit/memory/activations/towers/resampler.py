"""MiniCPM-V's and Qwen-VL's resampler on a tape: learnt queries that attend to the patches of every slice of an image.

Sources: OpenBMB's ``resampler.py`` as transformers has it on the way to a class of its own
(``modeling_minicpm_v_4_5.py``, ``MiniCPMVResampler.forward``); torch ``multi_head_attention_forward``, which gives the
weights back here and therefore computes them.
"""

from __future__ import annotations

from lintfit.frozen import frozen
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var
from lintfit.memory.activations.towers.style import tower_of

HEAD = 128
"""Elements of a head (``num_heads=embed_dim // 128``)."""


@frozen
class Queries:
    """So many for every slice."""

    count: int

    def __call__(self, batch: int, seq: int) -> int:
        return batch * self.count


def connector(t: Layer, x: Var, *, normed: bool = True) -> Var:
    """From the encoder's last states to as many tokens for each slice as there are queries.

    ``normed``: whether a norm ends the encoder. Qwen-VL's, from which this was taken, has none.
    """
    tower, wide = tower_of(t.facts), t.facts.hidden
    trains = t.recipe.trains("resampler")
    count, heads = tower.tokens or 1, max(1, wide // HEAD)
    x = t.layernorm(x, tower.hidden) if normed else x
    states = t.layernorm(t.linear("kv_proj", x, tower.hidden, wide), wide)
    queries = t.new(wide, states.item, trains, per=Queries(count))
    q, k, v = (_product(t, part, wide, trains) for part in (queries, t.map(states), states))
    scores = t.new(heads * count, q.item, q.grad or k.grad)
    scores = t.op(scores, (t.map(q), k), (q, k))
    weights = t.like(scores, scores.width, 4 if t.recipe.autocast else scores.item, scores.grad)
    t.op(weights, (scores,), (weights,))
    weights = t.cast(weights, v.item)
    out = t.op(t.new(wide, v.item, weights.grad or v.grad, per=queries.per), (weights, v), (weights, v))
    out = t.layernorm(_product(t, t.map(out), wide, trains), wide)
    return _product(t, out, wide, trains)


def _product(t: Layer, x: Var, wide: int, trains: bool) -> Var:
    """A product with a square matrix; these are no linear modules that PEFT finds by their names."""
    return t.matmul(x, wide, wide, item=t.recipe.weights, trains=trains)
