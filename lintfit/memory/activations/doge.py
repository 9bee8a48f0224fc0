"""Doge: a mask of every head of keys that the values decide, and experts looked up in tables (``modeling_doge.py``)."""

from __future__ import annotations

from lintfit.catalog.architectures.doge import keys_of
from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import frozen, replace
from lintfit.memory.activations.attention import Heads, attend, eager, repeat
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.llama import mlp, projected
from lintfit.memory.activations.recipe import ALIGNED
from lintfit.memory.activations.tape import INDEX, Var, function, pairs, tokens
from lintfit.memory.activations.traits import Traits


def heads(facts: ModelFacts, index: int = 0) -> Heads:
    """The heads, and what counts as the window: sequences that long have only their best keys kept."""
    return Heads(facts.heads, facts.kv_heads, facts.head_dim, facts.sliding_window)


TRAITS = Traits(heads=heads)


@frozen
class _Best:
    """So many keys for every token."""

    count: int

    def __call__(self, batch: int, seq: int) -> int:
        return batch * seq * self.count


def _filled(batch: int, seq: int) -> int:
    """Pairs of tokens in rows of a multiple of 8, as SDPA takes a mask."""
    return batch * seq * (-(-seq // ALIGNED) * ALIGNED)


def _unaligned(batch: int, seq: int) -> int:
    """Pairs where rows are not filled, and are copied."""
    return pairs(batch, seq) if seq % ALIGNED else 0


def _aligned(batch: int, seq: int) -> int:
    """Pairs where rows are filled, and no other copy is made."""
    return 0 if seq % ALIGNED else pairs(batch, seq)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer, whose residuals are weighed."""
    rate = t.rate("hidden_dropout")
    y = t.rmsnorm(x)
    t.held = (x, y)
    branch = _attention(t, y)
    t.held = (x,)
    x = _residual(t, x, t.dropped(branch, rate))
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    branch = _experts(t, y) if t.facts.config.get("is_moe") else mlp(t, y)
    t.held = (x,)
    return _residual(t, x, t.dropped(branch, rate))


def _residual(t: Layer, x: Var, branch: Var) -> Var:
    """``weight * x + branch``; the node asks for the weight, also where that is not trained."""
    t.held = (*t.held, branch)
    trains, size = t.recipe.trains("residual"), t.facts.hidden * t.recipe.weights
    scaled = t.like(x, x.width, max(x.item, t.recipe.weights), x.grad or trains)
    temp = (x.scratch(scaled.item),) if trains else ()
    t.op(scaled, (x,), (x,) if trains else (), temp=temp, weights=(size,) if trains else (), parameter=x.grad)
    return t.add(scaled, branch)


@function
def _attention(t: Layer, x: Var) -> Var:
    facts, shape = t.facts, heads(t.facts)
    q, k, v = projected(t, x, shape, norm=lambda t, part, width: t.rmsnorm(part, shape.dim))
    q, k = t.both_turned(q, k)
    t.held = (*t.held, q, k, v)  # beside so large a mask the projection out may be the most
    mask = _for_all(t, _mask(t, x, v, shape), shape)
    held = t.held
    if shape.keys < shape.queries:  # by eager attention, and by SDPA's as a mask is given
        k, v = repeat(t, k, shape), repeat(t, v, shape)
        t.held = (*held, k, v)
    every = replace(shape, keys=shape.queries)
    if t.recipe.attention == "eager":
        if t.graph and t.batched:  # copied by the products, as heads lie token by token
            q, k = t.map(q), k if shape.keys < shape.queries else t.map(k)
        out = eager(t, q, k, v, every, drops=t.rate("attention_dropout") > 0 and t.recipe.dropout, added=mask)
    else:
        if t.recipe.autocast:
            q, k, v = (t.cast(part, 2) for part in (q, k, v))
            mask = _filled_up(t, mask, mask.width, 2) if mask.item != 2 else mask
        out = attend(t, q, k, v, every, mask=mask)
    t.held = held
    return t.linear("o_proj", out, shape.queries * shape.dim, facts.hidden)


@function
def _mask(t: Layer, x: Var, v: Var, shape: Heads) -> Var:
    """``exp(A * softplus(dt))`` of every key, where the causal mask lets a query see it."""
    keys, trains = shape.keys, t.recipe.trains("A")
    step = t.linear("dt_proj", v, keys * shape.dim, keys)
    step = t.cast(step, 4) if t.recipe.autocast else step
    soft = t.map(step, (step,))
    rate = t.like(soft, keys, max(soft.item, t.recipe.weights), soft.grad or trains)
    made = (keys * t.recipe.weights,) if trains else ()
    t.op(rate, (soft,), (soft,) if trains else (), temp=(soft.scratch(rate.item),) if trains else (), weights=made)
    states = t.exp(rate)
    t.name(states)
    if t.recipe.attention != "eager":
        t.held = (*t.held, t.new(1, x.item, False, per=pairs))  # the causal mask as an additive one
    spread = t.link(Var(keys, states.item, pairs, states.storage, states.grad), (states,))
    mask = _without(t, spread, 1)
    if t.slides:
        t.held = (*t.held, mask)
        best = _Best((shape.window or 1) - 1)
        chosen = t.op(t.new(keys, INDEX, False, per=best), (mask, t.new(keys, mask.item, False, per=best)))
        t.held = (*t.held, chosen)
        active = t.op(t.new(keys, x.item, False, per=pairs), (t.new(keys, x.item, False, per=pairs),))
        t.held = (*t.held, active)
        mask = _without(t, mask, keys)
    return mask


def _without(t: Layer, mask: Var, wide: int) -> Var:
    """``masked_fill`` by a boolean mask, of every head where it is so ``wide``."""
    return t.op(t.new(mask.width, mask.item, mask.grad, per=pairs), (mask,), (t.new(wide, 1, False, per=pairs),))


def _for_all(t: Layer, mask: Var, shape: Heads) -> Var:
    """A copy for every head of queries, which has a name until attention is done."""
    if shape.queries > shape.keys:
        if t.recipe.attention == "eager" or (t.recipe.autocast and mask.item != 2):
            mask = t.op(t.new(shape.queries, mask.item, mask.grad, per=pairs), (mask,))
        else:
            mask = _filled_up(t, mask, shape.queries, mask.item)
    t.held = (*t.held, mask)
    return mask


def _filled_up(t: Layer, mask: Var, width: int, item: int) -> Var:
    """A copy, and one in rows that SDPA takes where sequences do not fill them, through which the gradient comes."""
    size = width * item
    raw = t.op(t.new(width, item, mask.grad, per=_unaligned), (mask,), temp=((size, _aligned),) if mask.grad else ())
    t.held = (*t.held, raw)
    source = Var(mask.width, mask.item, mask.per, mask.storage, False)
    return t.op(
        t.new(width, item, raw.grad, per=_filled), (raw, source), temp=((size, _unaligned),) if raw.grad else ()
    )


@function
def _experts(t: Layer, x: Var) -> Var:
    """Every token's best pairs of keys, and the rows of both tables that they stand for."""
    facts, config, h = t.facts, t.facts.config, t.facts.hidden
    keys, k, rows = keys_of(config), int(config["num_experts_per_tok"]), int(config["num_experts"])
    logits = t.linear("router_gate", x, h, 2 * keys)
    chosen = t.new(2 * keys, INDEX, False)
    best = t.op(t.new(2 * keys, logits.item, logits.grad), (logits,), (chosen,))
    t.held = (*t.held, logits, best, chosen)
    scores = t.op(t.new(keys**2, best.item, best.grad), (best,))
    t.held = (*t.held, scores)
    places = t.op(t.new(keys**2, INDEX, False), (t.new(keys, INDEX, False),))
    at = t.new(k, INDEX, False)
    top = t.op(t.new(k, scores.item, scores.grad), (scores,), (at,))
    indices = t.new(k, INDEX, False)
    t.held = (*t.held, places, at, top, indices)
    weights = t.softmax(t.cast(top, 4) if t.recipe.autocast else top)
    t.held = (*t.held, weights)
    down = _looked_up(t, indices, k, rows)
    t.held = (*t.held, down)
    up = _looked_up(t, indices, k, rows)
    t.held = (*t.held, up)
    each = t.bmm(down, x, k)
    t.held = (*t.held, each)
    each = t.mul(t.activation(each, facts.activation), weights)
    t.held = (*t.held[:-1], each)
    routed = t.bmm(each, up, h)
    t.held = (*t.held, routed)
    return t.add(mlp(t, x), routed)


def _looked_up(t: Layer, indices: Var, k: int, rows: int) -> Var:
    """Rows of a table, whose gradient is sorted and summed up in fp32 (``Embedding.cu``)."""
    h, item, trains = t.facts.hidden, t.recipe.weights, t.recipe.trains("embed")
    made = (rows * h * item,) if trains else ()
    temp = ((k * (4 * h + 6 * INDEX), tokens),) if trains else ()
    return t.op(t.new(k * h, item, trains), (), (indices,), temp=temp, weights=made)
