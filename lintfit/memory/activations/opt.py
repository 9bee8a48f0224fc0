"""OPT: LayerNorm, learned positions, relu MLP, dropout (``modeling_opt.py``)."""

from __future__ import annotations

from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var, function


def layer(t: Layer, x: Var, index: int) -> Var:
    """One layer, norms before the blocks (350m: after). The queries are scaled before the kernel."""
    facts = t.facts
    h, i = facts.hidden, facts.intermediate
    rate = t.rate("dropout")
    before = bool(facts.config.get("do_layer_norm_before", True))
    y = t.layernorm(x) if before else x
    t.held = (x, y)
    x = t.add(x, t.dropped(_attention(t, y), rate))
    if not before:
        x = t.layernorm(x)
    t.held = (x,)
    y = t.layernorm(x) if before else x
    t.held = (x, y)
    y = t.linear("fc1", y, h, i)
    t.held = (x,)
    y = t.activation(y, facts.activation)
    x = t.add(x, t.dropped(t.linear("fc2", y, i, h), rate))
    return x if before else t.layernorm(x)


@function
def _attention(t: Layer, x: Var) -> Var:
    facts = t.facts
    h = facts.hidden
    q = t.map(t.linear("q_proj", x, h, h))
    k = t.linear("k_proj", x, h, h)
    v = t.linear("v_proj", x, h, h)
    out = attend(t, q, k, v, Heads(facts.heads, facts.heads, facts.head_dim))
    return t.linear("out_proj", out, h, h)
