"""Helium: Llama's layers with norms that are weighted in fp32, and a rotary of pairs (``modeling_helium.py``)."""

from __future__ import annotations

from lintfit.memory.activations.attention import Heads
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.llama import attended, heads, mlp, projected
from lintfit.memory.activations.tape import Var, function, positions


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    y = norm(t, x)
    t.held = (x, y)
    x = t.add(x, _attention(t, y, heads(t.facts, index)))
    t.held = (x,)
    y = norm(t, x)
    t.held = (x, y)
    return t.add(x, mlp(t, y))


def norm(t: Layer, x: Var) -> Var:
    """The weight is cast to fp32 as well."""
    return t.full_norm(x, casts=True)


@function
def _attention(t: Layer, x: Var, shape: Heads) -> Var:
    q, k, v = projected(t, x, shape)
    return attended(t, *_turned(t, q, k, shape.dim, x.item), v, shape)


@function
def _turned(t: Layer, q: Var, k: Var, width: int, item: int) -> tuple[Var, Var]:
    """By tables of ``item`` bytes an element, which every layer spreads over pairs anew."""
    tables = t.new(width, item, False, per=positions), t.new(width, item, False, per=positions)
    t.name(*tables)
    return t.both_turned(q, k, tables=tables)
