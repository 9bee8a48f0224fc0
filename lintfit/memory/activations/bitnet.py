"""BitNet b1.58 in half precision: Llama's layer, both of whose blocks are normed once more (``modeling_bitnet.py``)."""

from __future__ import annotations

from lintfit.memory.activations.attention import attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.llama import heads, projected
from lintfit.memory.activations.tape import Var


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    y = t.rmsnorm(x)
    t.held = (x, y)
    x = t.add(x, _attention(t, y, index))
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    return t.add(x, _mlp(t, y))


def _attention(t: Layer, x: Var, index: int) -> Var:
    shape = heads(t.facts, index)
    q, k, v = projected(t, x, shape)
    out = t.rmsnorm(attend(t, t.rotary(q), t.rotary(k), v, shape))
    return t.linear("o_proj", out, shape.queries * shape.dim, t.facts.hidden)


def _mlp(t: Layer, x: Var) -> Var:
    h, i, held = t.facts.hidden, t.facts.intermediate, t.held
    gate = t.activation(t.linear("gate_proj", x, h, i), t.facts.activation)
    t.held = (*held, gate)
    up = t.linear("up_proj", x, h, i)
    t.held = held
    return t.linear("down_proj", t.rmsnorm(t.mul(gate, up), i), i, h)
