"""The first GPT's layers: a norm behind each block, and attention written out in Python (``modeling_openai.py``)."""

from __future__ import annotations

from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var, function, pairs, saved_factors, square


def layer(t: Layer, x: Var, index: int) -> Var:
    """One block."""
    t.held = (x,)
    branch = _attention(t, x)
    t.held = (x, branch)
    middle = t.layernorm(t.add(x, branch))
    t.held = (x, branch, middle)
    y = _mlp(t, middle)
    t.held = (x, branch, middle, y)
    return t.layernorm(t.add(middle, y))


@function
def _attention(t: Layer, x: Var) -> Var:
    h, base = t.facts.hidden, t.held
    fused = t.linear("c_attn", x, h, 3 * h, bias=True)
    t.held = (*base, fused)
    q, k, v = t.split(fused, (h, h, h))
    raw = _mixed(t, q, k, v)
    t.held = held = (*base, fused, raw)
    y = t.map(raw)
    t.held = (*held, y)
    y = t.linear("c_proj", y, h, h, bias=True)
    t.held = (*held, y)
    return t.dropped(y, t.rate("resid_pdrop"))


@function
def _mixed(t: Layer, q: Var, k: Var, v: Var) -> Var:
    """The scores times a triangle of ones, less 10,000 where it has none: under autocast fp32, as the triangle is."""
    heads, base = t.facts.heads, t.held
    if t.batched:  # ``matmul`` merges batch and heads, and saves the copies that it makes for that
        q, k = t.map(q), t.map(k)
    grad = q.grad or k.grad
    scores = t.map(t.op(t.new(heads, q.item, grad, per=pairs), (q, k), saved_factors(q, k)))
    t.held = (*base, scores)
    item = max(scores.item, t.recipe.weights)
    masked = t.map(scores, item=item)
    below = t.op(t.new(1, t.recipe.weights, False, per=square), ())
    scores = t.add(masked, below)
    t.held = (*base, scores)
    if t.recipe.padded:
        scores = t.add(scores)
        t.held = (*base, scores)
    weights = t.softmax(t.cast(scores, 4) if t.recipe.autocast else scores)
    t.held = (*base, weights)
    weights = t.dropped(weights, t.rate("attn_pdrop"))
    t.held = (*base, weights)
    if t.batched:
        v = t.map(v)
    if t.recipe.autocast:
        weights, v = t.cast(weights, 2), t.cast(v, 2)
    out = t.like(v, t.facts.hidden, v.item, weights.grad or v.grad)
    return t.op(out, (weights, v), saved_factors(weights, v))


@function
def _mlp(t: Layer, x: Var) -> Var:
    h, i, held = t.facts.hidden, t.facts.intermediate, t.held
    y = t.activation(t.linear("c_fc", x, h, i, bias=True), t.facts.activation)
    t.held = (*held, y)
    y = t.linear("c_proj", y, i, h, bias=True)
    return t.dropped(y, t.rate("resid_pdrop"))
