"""gpt-oss: attention with sinks, a clamped SwiGLU in its experts, biases everywhere (``modeling_gpt_oss.py``)."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import replace
from lintfit.memory.activations.attention import Heads, attend, repeat
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.experts import experts
from lintfit.memory.activations.llama import heads, projected
from lintfit.memory.activations.tape import INDEX, Var, function, pairs, saved_factors
from lintfit.memory.activations.traits import Traits


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    assert t.facts.moe is not None
    y = t.full_norm(x)
    t.held = (x, y)
    x = t.add(x, _attention(t, y, index))
    t.held = (x,)
    y = t.full_norm(x)
    t.held = (x, y)
    return t.add(x, experts(t, y, t.facts.moe, gate=_clamped, biased=True))


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    h = t.facts.hidden
    shape = _heads(t.facts, index)
    wide = shape.queries * shape.dim
    q, k, v = projected(t, x, shape, bias=True)
    q, k = _rotary(t, q), _rotary(t, k)
    if t.recipe.attention == "flash_attention_2":
        out = attend(t, q, k, v, shape, head_major=True)
    else:
        out = _with_sinks(t, q, k, v, shape)
    return t.linear("o_proj", out, wide, h, bias=True)


def _heads(facts: ModelFacts, index: int) -> Heads:
    """Every other layer slides, the first among them, where ``layer_types`` does not tell."""
    shape = heads(facts, index)
    slides = index % 2 == 0 or bool(facts.config.get("layer_types"))
    return shape if slides else replace(shape, window=None)


TRAITS = Traits(heads=_heads)


def _rotary(t: Layer, x: Var) -> Var:
    """Both halves of each head turned one by one and put together; keeps only the shared cos and sin.

    Under autocast the tables of an fp32 model make them fp32.
    """
    item = max(x.item, t.recipe.opening)
    halves = t.split(x, (x.width // 2, x.width // 2))
    first, second = (t.add(t.map(halves[0], item=item), t.map(halves[1], item=item)) for _ in range(2))
    return t.op(t.like(x, x.width, item, x.grad), (first, second))


def _beside_sink(batch: int, seq: int) -> int:
    """Pairs of tokens, and one sink for each query."""
    return batch * seq * (seq + 1)


def _with_sinks(t: Layer, q: Var, k: Var, v: Var, shape: Heads) -> Var:
    """Eager scores, each row with its head's sink behind it, less its largest; softmax in the scores' dtype.

    The weights that meet the values are a view without the sinks; on the way back it is filled up with zeros.
    """
    recipe, outer = t.recipe, t.held
    given = q, k, v
    k, v = repeat(t, k, shape), repeat(t, v, shape)
    t.held = (*outer, *given, k, v)
    if recipe.autocast:
        q, k = t.cast(q, 2), t.cast(k, 2)
    grad = q.grad or k.grad
    scores = t.op(t.new(shape.queries, q.item, grad, per=pairs), (q, k), saved_factors(q, k))
    masked = t.map(scores)
    scores = t.map(masked, item=max(masked.item, recipe.opening))
    named, t.held = t.held, (*t.held, scores)
    trains = not recipe.frozen
    item = max(scores.item, recipe.weights)
    combined = t.new(shape.queries, item, grad or trains, per=_beside_sink)
    if combined.grad:
        made = (shape.queries * recipe.weights,) if trains else ()
        t.link(combined, (scores,), same=scores.item == item, weights=made)
    largest = t.op(t.new(shape.queries, item, combined.grad), (combined,), (t.new(shape.queries, INDEX, False),))
    t.held = (*t.held, combined)
    centred = t.add(combined, largest)
    t.held = (*named, scores, centred)
    probabilities = t.softmax(centred)
    t.held = (*t.held, probabilities)
    weights = t.copied_back(probabilities, per=pairs)
    weights = t.dropped(weights, t.rate("attention_dropout"))
    weights = t.cast(t.cast(weights, v.item), q.item)
    t.held = (*named, centred, probabilities, weights)
    v = t.cast(v, weights.item)
    out = t.map(t.op(t.like(q, q.width, v.item, weights.grad or v.grad), (weights, v), saved_factors(weights, v)))
    t.held = outer
    return out


def _clamped(t: Layer, both: Var, width: int) -> Var:
    """``(up + 1) * gate * sigmoid(alpha * gate)`` with gate and up, every other column, clamped.

    A clamp keeps its input, here the whole product; a view of every other column has a gradient of the whole's size.
    """
    gate, up = (t.copied_back(both, width) for _ in range(2))
    gate, up = (t.map(part, (part,), temp=(part.scratch(2),)) for part in (gate, up))
    t.held, held = (*t.held, gate, up), t.held
    glu = t.mul(gate, t.sigmoid(t.map(gate)))
    out = t.mul(t.add(up), glu)
    t.held = held
    return out
