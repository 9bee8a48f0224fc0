"""Persimmon: LayerNorm, queries, keys and values side by side in each head, partial rotary, squared relu.

After ``modeling_persimmon.py`` of transformers.
"""

from __future__ import annotations

from lintfit.memory.activations.attention import attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.llama import heads
from lintfit.memory.activations.tape import Var, function


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    facts = t.facts
    h, i = facts.hidden, facts.intermediate
    y = t.layernorm(x)
    t.held = (x, y)
    x = t.add(x, _attention(t, y, index))
    t.held = (x,)
    y = t.layernorm(x)
    t.held = (x, y)
    y = t.linear("dense_h_to_4h", y, h, i, bias=True)
    y = t.activation(y, facts.activation)
    y = t.linear("dense_4h_to_h", y, i, h, bias=True)
    t.held = (x,)
    return t.add(t.dropped(y, t.rate("hidden_dropout")), x)


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    facts = t.facts
    h, shape = facts.hidden, heads(facts, index)
    both = t.linear("query_key_value", x, h, 3 * h, bias=True)
    q, k, v = (t.copied_back(both, h) for _ in range(3))  # every third stretch of a head: no view of one piece
    t.name(both)
    if facts.qk_norm:
        q, k = t.layernorm(q, shape.dim), t.layernorm(k, shape.dim)
    share = facts.rotary_dim / shape.dim
    turned = t.turned(q, share), t.turned(k, share)
    t.name(q, k, *turned)
    q, k = t.joined(q, turned[0]), t.joined(k, turned[1])
    return t.linear("dense", attend(t, q, k, v, shape, head_major=True), h, h, bias=True)
