"""DiffLlama: two calls of attention over halves of the values, and their difference (``modeling_diffllama.py``)."""

from __future__ import annotations

from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.llama import heads, mlp, projected
from lintfit.memory.activations.tape import Var, function


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    y = t.rmsnorm(x)
    t.held = (x, y)
    branch = _attention(t, y, index)
    t.held = (x,)
    x = t.add(x, branch)
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    branch = mlp(t, y)
    t.held = (x,)
    return t.add(x, branch)


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    """The first call's weights are given back, the second's have a name to the end."""
    facts = t.facts
    shape = heads(facts, index)
    wide, narrow = shape.queries * shape.dim, shape.keys * shape.dim
    q, k, v = projected(t, x, shape)
    q, k = t.both_turned(q, k)
    t.name(q, k, v)
    halves = t.split(v, (narrow // 2, narrow // 2))
    values = []
    for half in halves:  # each for the heads of both
        values.append(t.op(t.like(half, narrow, half.item, half.grad), (half,)))
        t.name(values[-1])
    held = t.held
    first = _attended(t, q, k, values[0], shape)
    weights = t.lasting
    t.held = (*held, first)
    second = _attended(t, q, k, values[1], shape)
    t.lasting = (*weights, *t.lasting)
    t.held = (*held, first, second)
    both = _joined(t, first, second)
    t.held = (*held, both)
    one, other = t.split(both, (wide, wide))
    out = _difference(t, one, other)
    t.held = (*held, both, out)
    out = t.map(_normed(t, out, 2 * shape.dim))
    t.held = (*held, both, out)
    out = t.linear("o_proj", out, wide, facts.hidden)
    t.lasting = weights
    return out


def _attended(t: Layer, q: Var, k: Var, v: Var, shape: Heads) -> Var:
    """One of two calls; the eager product copies queries, and keys that are not repeated, for itself."""
    if t.recipe.attention == "eager" and t.graph and t.batched:
        q, k = t.map(q), t.map(k) if shape.keys == shape.queries else k
    return attend(t, q, k, v, shape)


def _joined(t: Layer, first: Var, second: Var) -> Var:
    """Both put together; their gradients are views of one, which is there until neither needs it."""
    both = t.like(first, first.width + second.width, first.item, first.grad or second.grad)
    t.link(both, (first, second), same=True)
    if t.watched:
        t.steps.append((both, (first, second), t.held + t.lasting, False, ()))
    return both


def _difference(t: Layer, one: Var, other: Var) -> Var:
    """``one - lambda * other``; lambda is a number, whose gradient is summed up from a whole product."""
    trains = t.recipe.trains("lambda")
    made = (4 * t.facts.head_dim * t.recipe.weights,) if trains else ()
    temp = (other.scratch(other.item),) if trains else ()
    product = t.like(other, other.width, other.item, other.grad or trains)
    t.op(product, (other,), (other,) if trains else (), temp=temp, weights=made, parameter=True)
    negated = t.link(Var(product.width, product.item, product.per, product.storage, product.grad), (product,))
    return t.add(one, negated)


def _normed(t: Layer, x: Var, width: int) -> Var:
    """torch's RMSNorm without a weight, a kernel each way, fp32 under autocast: saves its input and a number a row."""
    x = t.cast(x, 4) if t.recipe.autocast else x
    return t.map(x, (x, t.like(x, x.width // width, 4, False)))
