"""Granite Swash: Granite whose attention is scaled by a sink for each head (``modeling_granite_swa.py``)."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.attention import Heads, attend, expand, laid_out
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.llama import heads, mlp, projected
from lintfit.memory.activations.tape import Var, function, pairs, saved_factors
from lintfit.memory.activations.traits import Traits


def unturned(facts: ModelFacts, index: int) -> bool:
    """Whether a layer has no rotary positions: its base frequency is 0."""
    bases = facts.config.get("layer_rope_theta")
    return isinstance(bases, list) and index < len(bases) and not bases[index]


TRAITS = Traits(unturned=unturned)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    y = t.rmsnorm(x)
    t.held = (x, y)
    x = t.add(x, t.map(attention(t, y, index)))
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    return t.add(x, t.map(mlp(t, y)))


@function
def attention(t: Layer, x: Var, index: int) -> Var:
    """Self-attention of one layer, from the normalised input to the output projection."""
    facts = t.facts
    shape, bias = heads(facts, index), bool(facts.config.get("attention_bias"))
    q, k, v = projected(t, x, shape, bias=bias)
    if not unturned(facts, index):
        q, k = t.both_turned(q, k)
    drops = t.rate("attention_dropout") > 0 and t.recipe.dropout
    fused = t.recipe.attention == "flash_attention_2"
    out = attend(t, q, k, v, shape) if fused else _with_sinks(t, q, k, v, shape, drops=drops)
    return t.linear("o_proj", out, shape.queries * shape.dim, facts.hidden, bias=bias)


def _with_sinks(t: Layer, q: Var, k: Var, v: Var, shape: Heads, *, drops: bool) -> Var:
    """Eager attention, whose result is scaled by ``sigmoid(logsumexp(scores) - sink)``.

    ``logsumexp`` keeps its input and, for ``exp(scores - logsumexp)`` in its backward, its result.
    """
    recipe, outer, asked = t.recipe, t.held, q.item
    t.name(q, k, v)
    if shape.keys < shape.queries:
        k, v = expand(t, k, shape), expand(t, v, shape)
        t.name(k, v)
    if t.batched:
        q, k, v = laid_out(t, q), laid_out(t, k), laid_out(t, v)
    if recipe.autocast:
        q, k = t.cast(q, 2), t.cast(k, 2)
    scores = t.op(t.new(shape.queries, q.item, q.grad or k.grad, per=pairs), (q, k), saved_factors(q, k))
    masked = t.cast(t.map(scores), max(scores.item, recipe.opening))
    named = t.held
    t.held = (*named, masked)
    lse = t.new(shape.queries, masked.item, masked.grad)
    t.op(lse, (masked,), (masked, lse), temp=(masked.scratch(2 * masked.item),))
    made = () if recipe.frozen else (shape.queries * recipe.weights,)
    above = t.op(t.new(shape.queries, max(lse.item, recipe.weights), lse.grad or bool(made)), (lse,), weights=made)
    scale = t.sigmoid(t.cast(above, 4))
    t.held = (*named, masked, lse, scale)
    weights = t.cast(t.softmax(t.cast(masked, 4)), asked)
    t.held = (*named, lse, scale)
    if drops:
        weights = t.dropout(weights)
    t.scores = weights
    t.lasting = (weights,)
    factor = weights
    if recipe.autocast:
        factor, v = t.cast(weights, 2), t.cast(v, 2)
    out = t.op(t.like(q, q.width, v.item, factor.grad or v.grad), (factor, v), saved_factors(factor, v))
    out = t.map(t.by_row(out, t.cast(scale, out.item)))
    t.held = outer
    return out
