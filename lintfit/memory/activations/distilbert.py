"""DistilBERT's layers: BERT's, but for a dropout fewer behind attention (``modeling_distilbert.py``)."""

from __future__ import annotations

from lintfit.memory.activations.bert import attention
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var


def layer(t: Layer, x: Var, index: int) -> Var:
    """One layer of the encoder."""
    facts = t.facts
    h, i = facts.hidden, facts.intermediate
    t.held = (x,)
    branch = attention(t, x, ("q_lin", "k_lin", "v_lin"), t.rate("attention_dropout"), "out_lin")
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
