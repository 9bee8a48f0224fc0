"""XGLM: eager attention over batch and heads together, dropout, an MLP without a gate (``modeling_xglm.py``)."""

from __future__ import annotations

from lintfit.memory.activations.attention import laid_out
from lintfit.memory.activations.biogpt import normed_before
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var, function, pairs, saved_factors


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer, without cross-attention."""
    return normed_before(t, x, lambda y: _attention(t, y), t.rate("dropout"))


@function
def _attention(t: Layer, x: Var) -> Var:
    """Queries are scaled, and scores cut off from below; autocast makes the softmax fp32."""
    facts, h, held = t.facts, t.facts.hidden, t.held
    q = t.map(t.linear("q_proj", x, h, h, bias=True))
    t.name(q)
    k = t.linear("k_proj", x, h, h, bias=True)
    t.name(k)
    v = t.linear("v_proj", x, h, h, bias=True)
    if t.batched:  # batch and heads of what lies token by token cannot be merged
        q, k, v = t.map(q), t.map(k), t.map(v)
    t.held = (*held, q, k, v)
    grad = q.grad or k.grad
    scores = t.op(t.new(facts.heads, q.item, grad, per=pairs), (q, k), saved_factors(q, k))
    item = max(scores.item, t.recipe.opening)
    masked = t.map(scores, item=item)
    # The gradient of ``torch.max``: whether both are equal, or this one less, and halves of it.
    temp = [masked.scratch(2 + item)] if grad else []
    cut = t.map(masked, (masked,), temp=temp)
    t.held = (*t.held, cut)
    weights = t.softmax(t.cast(cut, 4) if t.recipe.autocast else cut)
    t.held = (*t.held[:-1], weights)
    t.scores = weights
    t.lasting = (weights,)
    dropped = t.dropped(weights, t.rate("attention_dropout"))
    t.held = (*t.held, dropped)
    probs, values = (t.cast(dropped, 2), t.cast(v, 2)) if t.recipe.autocast else (dropped, v)
    out = t.like(q, h, probs.item, grad or v.grad)
    out = t.map(t.op(out, (probs, values), saved_factors(probs, values)))
    t.held = (*t.held, out)
    return t.linear("out_proj", laid_out(t, out), h, h, bias=True)
