"""MPNet's layers: BERT's, with biases by relative position, which all share (``modeling_mpnet.py``).

Attention is written out in Python, whatever is asked for.
"""

from __future__ import annotations

from lintfit.memory.activations.bert import behind_norm
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var, function, pairs, saved_factors


def layer(t: Layer, x: Var, index: int) -> Var:
    """One layer of the encoder."""
    t.held = (x,)
    y = _attention(t, x)
    t.held = (x, y)
    middle = t.layernorm(t.add(t.dropped(y, t.rate("hidden_dropout_prob")), x))
    return behind_norm(t, x, middle)


@function
def _attention(t: Layer, x: Var) -> Var:
    """Attention whose names last until its projection is done; the biases are somebody else's to count."""
    h, heads, base = t.facts.hidden, t.facts.heads, t.held
    q, k, v = (t.linear(name, x, h, h, bias=True) for name in ("q", "k", "v"))
    t.held = named = (*base, q, k, v)
    if t.batched:  # ``matmul`` merges batch and heads, and saves the copies that it makes for that
        q, k = t.map(q), t.map(k)
    grad = q.grad or k.grad
    scores = t.map(t.op(t.new(heads, q.item, grad, per=pairs), (q, k), saved_factors(q, k)))
    biases = t.new(heads, t.recipe.weights, not t.recipe.frozen, per=pairs)
    biases.storage.external = True
    scores = t.add_(scores, biases)
    t.held = (*named, scores)
    if t.recipe.padded:
        scores = t.map(scores, item=max(scores.item, t.recipe.opening))
        t.held = (*named, scores)
    weights = t.softmax(t.cast(scores, 4) if t.recipe.autocast else scores)
    weights = t.dropped(weights, t.rate("attention_probs_dropout_prob"))
    t.held = (*named, scores, weights)
    if t.batched:
        v = t.map(v)
    if t.recipe.autocast:
        weights, v = t.cast(weights, 2), t.cast(v, 2)
    mixed = t.op(t.like(v, h, v.item, weights.grad or v.grad), (weights, v), saved_factors(weights, v))
    mixed = t.map(mixed)
    t.held = (*t.held, mixed)
    return t.linear("o", mixed, h, h, bias=True)
