"""nanochat: RMSNorm without a weight, also behind the rotary, and squared ReLU (``modeling_nanochat.py``)."""

from __future__ import annotations

from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.llama import attended, heads, mlp, projected
from lintfit.memory.activations.tape import Var, function

MLP = ("", "fc1", "fc2")


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    y = norm(t, x)
    t.held = (x, y)
    x = t.add(x, _attention(t, y, index))
    t.held = (x,)
    y = norm(t, x)
    t.held = (x, y)
    return t.add(x, mlp(t, y, names=MLP))


@function
def norm(t: Layer, x: Var, width: int | None = None) -> Var:
    """``_norm(x.float()).type_as(x)``."""
    t.name(x)
    return t.cast(t.root_mean_square(t.cast(x, 4), width or t.facts.hidden), x.item)


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    shape = heads(t.facts, index)
    q, k, v = projected(t, x, shape)
    q, k = t.both_turned(q, k)
    return attended(t, norm(t, q, shape.dim), norm(t, k, shape.dim), v, shape)
