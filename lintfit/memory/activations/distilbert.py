"""DistilBERT's layers: BERT's, but for a dropout fewer behind attention (``modeling_distilbert.py``)."""

from __future__ import annotations

from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var, function


def layer(t: Layer, x: Var, index: int) -> Var:
    """One layer of the encoder."""
    facts = t.facts
    h, i = facts.hidden, facts.intermediate
    t.held = (x,)
    branch = _attention(t, x)
    t.held = (x, branch)
    middle = t.layernorm(t.add(branch, x))
    t.held = (x, middle)
    y = t.linear("lin1", middle, h, i, bias=True)
    t.held = (x, middle, y)
    y = t.activation(y, facts.activation)
    t.held = (x, middle, y)
    branch = t.linear("lin2", y, i, h, bias=True)
    t.held = (x, middle, branch)
    branch = t.dropped(branch, t.rate("dropout"))
    t.held = (x, middle, branch)
    return t.layernorm(t.add(branch, middle))


@function
def _attention(t: Layer, x: Var) -> Var:
    h, shape = t.facts.hidden, Heads(t.facts.heads, t.facts.heads, t.facts.head_dim)
    parts: list[Var] = []
    for name in ("q_lin", "k_lin", "v_lin"):
        parts.append(t.linear(name, x, h, h, bias=True))
        t.name(parts[-1])
    out = attend(t, parts[0], parts[1], parts[2], shape, half_softmax=True)
    t.name(out)
    return t.linear("out_lin", out, h, h, bias=True)
