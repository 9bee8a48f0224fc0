"""MiMo V2 Flash: eager attention, with sinks within windows, and experts (``modeling_mimo_v2_flash.py``)."""

from __future__ import annotations

from lintfit.catalog.architectures._layer_kinds import SLIDING
from lintfit.catalog.architectures.mimo_v2_flash import turned
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.attention import Heads, attend, repeat
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.moe import feed_forward
from lintfit.memory.activations.tape import INDEX, Var, function, pairs, saved_factors
from lintfit.memory.activations.traits import Traits


def heads(facts: ModelFacts, index: int) -> Heads:
    """Layers with a window have twice the key heads."""
    slides, value = facts.config["layer_types"][index] == SLIDING, int(facts.config["v_head_dim"])
    window = facts.sliding_window if slides else None
    return Heads(facts.heads, facts.kv_heads * (2 if slides else 1), facts.head_dim, window, value)


TRAITS = Traits(heads=heads)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    y = t.rmsnorm(x)
    t.held = (x, y)
    x = t.add(x, _attention(t, y, index))
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    return feed_forward(t, x, y, index)


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    facts, shape = t.facts, heads(t.facts, index)
    h, value, bias = facts.hidden, shape.value_dim or shape.dim, bool(facts.config.get("attention_bias"))
    q = t.linear("q_proj", x, h, shape.queries * shape.dim, bias=bias)
    k = t.linear("k_proj", x, h, shape.keys * shape.dim, bias=bias)
    v = t.linear("v_proj", x, h, shape.keys * value, bias=bias)
    if facts.config.get("attention_value_scale", 1.0) is not None:
        v = t.map(v)
    kind = SLIDING if shape.window is not None else "full_attention"
    q, k = t.both_turned(q, k, turned(facts.config, kind, shape.dim) / shape.dim, concatenated=True)
    if t.recipe.attention == "flash_attention_2":
        out = attend(t, q, k, v, shape, head_major=True)
    else:
        out = _scored(t, q, k, v, shape, sinks=shape.window is not None)
    return t.linear("o_proj", out, shape.queries * value, h)


def _beside_sink(batch: int, seq: int) -> int:
    """Pairs of tokens, and one sink for each query."""
    return batch * seq * (seq + 1)


def _scored(t: Layer, q: Var, k: Var, v: Var, shape: Heads, *, sinks: bool) -> Var:
    """Eager scores less the largest of each row, with the head's sink behind it; softmax in the scores' dtype.

    With sinks the weights that meet the values are a view without them; on the way back it is filled up with zeros.
    """
    recipe, outer = t.recipe, t.held
    given = q, k, v
    if shape.keys < shape.queries:
        k, v = repeat(t, k, shape), repeat(t, v, shape)
    t.held = named = (*outer, *given, k, v)
    if recipe.autocast:
        q, k = t.cast(q, 2), t.cast(k, 2)
    grad = q.grad or k.grad
    scores = t.map(t.op(t.new(shape.queries, q.item, grad, per=pairs), (q, k), saved_factors(q, k)))
    t.held = (*named, scores)
    scores = t.map(scores, item=max(scores.item, recipe.opening))
    t.held = (*named, scores)
    if sinks:
        scores = _beside_sinks(t, scores, shape)
    largest = t.new(shape.queries, scores.item, scores.grad)
    t.op(largest, (scores,), (t.new(shape.queries, INDEX, False),))
    t.held = (*named, scores)
    scores = t.add(scores, largest)
    t.held = (*named, scores)
    probabilities = t.softmax(scores)
    weights = t.copied_back(probabilities, per=pairs) if sinks else probabilities
    if t.rate("attention_dropout") > 0 and recipe.dropout:
        weights = t.dropout(weights)
    t.held = (*named, scores, probabilities)
    weights = t.cast(weights, v.item)
    t.lasting = (weights,)  # A variable of the layer's has what attention gives back beside its result.
    t.held = (*named, probabilities)
    weights = t.cast(weights, q.item)
    v = t.cast(v, weights.item)
    if shape.keys == shape.queries and t.batched:
        v = t.add(v)
    width = shape.queries * (shape.value_dim or shape.dim)
    out = t.op(t.like(q, width, v.item, weights.grad or v.grad), (weights, v), saved_factors(weights, v))
    out = t.map(out)
    t.held = outer
    return out


def _beside_sinks(t: Layer, scores: Var, shape: Heads) -> Var:
    """Scores and sinks in a new tensor."""
    trains, item = not t.recipe.frozen, max(scores.item, t.recipe.weights)
    combined = t.new(shape.queries, item, scores.grad or trains, per=_beside_sink)
    if t.watched:
        t.steps.append((combined, (scores,), t.held, False, ()))
    made = (shape.queries * t.recipe.weights,) if trains else ()
    return t.link(combined, (scores,), same=scores.item == item, weights=made)
