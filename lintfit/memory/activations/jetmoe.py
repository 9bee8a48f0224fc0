"""JetMoE: experts for queries and what attention gives, and for the MLP, one product after the other.

Source: ``modeling_jetmoe.py``. Tokens are taken as spread evenly.
"""

from __future__ import annotations

from typing import NamedTuple

from lintfit.catalog.facts import MoE
from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.experts import Routed
from lintfit.memory.activations.tape import CAST, INDEX, Var, function, once, saved_factors


class Routing(NamedTuple):
    """Where each expert's tokens come from, one index by expert and one by token, their weights, and all scores."""

    order: Var
    tokens: Var
    gates: Var
    logits: Var


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    y = t.rmsnorm(x)
    t.held = (x, y)
    branch, logits = _attention(t, y)
    t.held, t.lasting = (x,), (logits,)  # the last of what attention gives back, in the place of its weights
    x = t.add(x, branch)
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    branch = _mlp(t, y)
    t.held = (x,)
    return t.add(x, branch)


@function
def _attention(t: Layer, x: Var) -> tuple[Var, Var]:
    facts, moe = t.facts, t.facts.moe
    assert moe is not None
    h, k, width = facts.hidden, moe.top_k, facts.kv_heads * facts.head_dim
    q, routing = _queries(t, x, moe, width)
    t.held = (*t.held, *routing)
    both = t.linear("kv_proj", x, h, 2 * width)
    key, value = t.split(both, (width, width))
    held = t.held
    t.name(value)
    q, key = t.both_turned(q, key)
    t.held = held
    # Each expert of a token has a copy.
    key, value = (t.op(t.like(part, k * width, part.item, part.grad), (part,)) for part in (key, value))
    heads = Heads(facts.heads, facts.heads, facts.head_dim)
    out = attend(t, q, key, value, heads)
    t.held = (*t.held, out)
    return _given_back(t, out, routing, moe, width), routing.logits


@function
def _queries(t: Layer, x: Var, moe: MoE, width: int) -> tuple[Var, Routing]:
    routing = _route(t, x, moe)
    t.held = (*t.held, *routing)
    taken = _gathered(t, x, routing.tokens, moe.top_k * x.width)
    t.held = (*t.held, taken)
    made = _product(t, taken, moe, t.facts.hidden, width)
    t.held = (*t.held, made)
    return _scattered(t, made, routing.order, made.width), routing


@function
def _given_back(t: Layer, x: Var, routing: Routing, moe: MoE, width: int) -> Var:
    taken = _gathered(t, x, routing.order, x.width)
    t.held = (*t.held, taken)
    return _weighted(t, _product(t, taken, moe, width, t.facts.hidden), routing, moe)


@function
def _mlp(t: Layer, x: Var) -> Var:
    facts, moe = t.facts, t.facts.moe
    assert moe is not None
    h, k, i = facts.hidden, moe.top_k, moe.intermediate
    routing = _route(t, x, moe)
    t.held = (*t.held, *routing)
    taken = _gathered(t, x, routing.tokens, k * h)
    t.held = (*t.held, taken)
    both = _product(t, taken, moe, h, 2 * i)
    t.held = (*t.held, both)
    gate, up = t.split(both, (k * i, k * i))
    inner = t.mul(t.activation(gate, facts.activation), up)
    t.held = (*t.held, inner)
    return _weighted(t, _product(t, inner, moe, i, h), routing, moe)


@function
def _route(t: Layer, x: Var, moe: MoE) -> Routing:
    """The best experts by their scores in fp32, and the order of the tokens by these."""
    k = moe.top_k
    logits = t.cast(t.linear("layer", x, t.facts.hidden, moe.experts), 4)
    chosen = t.new(k, INDEX, False)
    best = t.op(t.new(k, 4, logits.grad), (logits,), (chosen,))
    gates = t.cast(t.softmax(best), x.item)
    order, tokens = t.new(k, INDEX, False), t.new(k, INDEX, False)
    t.held = (*t.held, logits, best, chosen, gates, *(t.new(moe.experts, gates.item, False) for _ in range(2)))
    t.held = (*t.held, t.new(k, INDEX, False), order)
    t.op(tokens, (order,))
    ordered = t.op(t.like(gates, k, gates.item, gates.grad), (gates,), (order,), temp=(gates.scratch(gates.item),))
    return Routing(order, tokens, ordered, logits)


def _gathered(t: Layer, x: Var, index: Var, width: int) -> Var:
    """Rows of x in another order, ``width`` elements a token."""
    return t.op(t.like(x, width, x.item, x.grad), (x,), (index,), temp=(x.scratch(x.item),))


def _scattered(t: Layer, x: Var, index: Var, width: int) -> Var:
    """Rows added to zeros, which have a name; their own gradient is gathered."""
    zeros = t.like(x, width, x.item, False)
    t.held = (*t.held, zeros)
    return t.op(t.like(x, width, x.item, x.grad), (x, zeros), (x, index))


def _weighted(t: Layer, x: Var, routing: Routing, moe: MoE) -> Var:
    """Results by their weights, summed up for every token, with a bias."""
    gates = routing.gates
    out = t.like(x, x.width, max(x.item, gates.item), x.grad or gates.grad)
    temp = [t.uncast(x, out.item)] if x.grad and x.item < out.item else []
    temp += [x.scratch(out.item)] if gates.grad else []
    t.op(out, (x, gates), saved_factors(x, gates), temp=temp)
    t.held = (*t.held, out)
    total = _scattered(t, out, routing.tokens, x.width // moe.top_k)
    trains = not t.recipe.frozen
    item = max(total.item, t.recipe.weights)
    biased = t.like(total, total.width, item, total.grad or trains)
    return t.op(biased, (total,), weights=(total.width * t.recipe.weights,) if trains else ())


@function
def _product(t: Layer, x: Var, moe: MoE, rows: int, columns: int) -> Var:
    """Each expert's product with its part of the rows, put together in a new tensor."""
    part = Routed(moe.top_k, moe.experts)
    parts = [Var(rows, x.item, part, x.storage, x.grad) for _ in range(moe.experts)]
    if x.grad:
        t.nodes.append((tuple(parts), (x,), False, (), (), False, (), ()))
    size, whole = rows * columns, moe.experts * rows * columns * t.recipe.weights
    made: list[Var] = []
    for number, each in enumerate(parts):
        weight = t.constant(size, t.recipe.weights, not t.recipe.frozen, CAST)
        weight.storage.external = True
        if weight.grad:
            last = number == moe.experts - 1
            t.op(weight, (), weights=(whole if last else 0,), temp=() if last else ((whole, once),))
        made.append(_one(t, each, weight, rows, columns))
        t.held = (*t.held, made[-1])
    out = t.like(x, x.width // rows * columns, made[0].item, made[0].grad)
    t.link(out, made, same=True)
    if t.watched:
        t.steps.append((out, made, t.held + t.lasting, False, ()))
    return out


def _one(t: Layer, x: Var, weight: Var, rows: int, columns: int) -> Var:
    """A product with an expert's weight, of which autocast makes a new copy for each use."""
    if not weight.grad:
        return t.matmul(x, rows, columns, item=weight.item, trains=False)
    if t.recipe.autocast:
        x, weight = t.cast(x, 2), t.cast(weight, 2)
    out = t.like(x, columns, x.item, True)
    return t.op(out, (x, weight), saved_factors(x, weight))
