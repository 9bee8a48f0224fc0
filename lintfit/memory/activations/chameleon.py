"""Chameleon: Llama's layers with a LayerNorm of each head of queries and keys (``modeling_chameleon.py``).

``swin_norm`` puts the norms behind the blocks.
"""

from __future__ import annotations

from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.llama import attended, heads, mlp, projected
from lintfit.memory.activations.tape import Var, function


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    behind = bool(t.facts.config.get("swin_norm"))
    for block in (_attention, mlp):
        y = x if behind else t.rmsnorm(x)
        t.held = (x, y)
        branch = block(t, y)
        t.held = (x, branch) if behind else (x,)
        branch = t.rmsnorm(branch) if behind else branch
        t.held = (x,)
        x = t.add(x, branch)
        t.held = (x,)
    return x


@function
def _attention(t: Layer, x: Var) -> Var:
    shape = heads(t.facts)
    q, k, v = projected(t, x, shape)
    t.name(v)
    q, k = _normed(t, q, shape.dim), _normed(t, k, shape.dim)
    q, k = t.both_turned(q, k)
    return attended(t, q, k, v, shape)


def _normed(t: Layer, x: Var, dim: int) -> Var:
    """torch's LayerNorm without a weight, and then a product with one and a sum of their own."""
    trains, item = t.recipe.trains("norm"), t.recipe.weights
    x = t.cast(x, 4) if t.recipe.autocast else x
    rows = x.width // dim
    numbers = t.like(x, rows, 4, False), t.like(x, rows, 4, False)
    normed = t.op(t.like(x, x.width, x.item, x.grad), (x,), (x, *numbers))
    out = t.like(x, x.width, max(x.item, item), x.grad or trains)
    temp = (x.scratch(out.item),) if trains else ()
    made = (2 * x.width * item,) if trains else ()
    t.op(out, (normed,), (normed,) if trains else (), temp=temp, weights=made, parameter=normed.grad)
    return t.add(out)
