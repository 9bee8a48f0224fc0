"""DBRX: clipped queries, keys and values, LayerNorm, a loop over experts (``modeling_dbrx.py``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lintfit.catalog.facts import ModelFacts, MoE
from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.experts import Routed
from lintfit.memory.activations.tape import CAST, INDEX, Var, function, once, saved_factors


def _part(facts: ModelFacts, key: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = facts.config.get(key) or {}
    return found


def layer(t: Layer, x: Var, index: int) -> Var:
    """One block, whose norms give back the stream's dtype."""
    rate = t.rate("resid_pdrop")
    y = t.cast(t.layernorm(x), x.item)
    t.held = (x, y)
    branch = t.dropped(_attention(t, y), rate)
    t.held = (x,)
    x = t.add(branch, x)
    t.held = (x,)
    y = t.cast(t.layernorm(x), x.item)
    t.held = (x, y)
    branch = t.dropped(_feed_forward(t, y), rate)
    t.held = (x,)
    return t.add(x, branch)


@function
def _attention(t: Layer, x: Var) -> Var:
    facts = t.facts
    shape = Heads(facts.heads, facts.kv_heads, facts.head_dim)
    wide, narrow = facts.heads * facts.head_dim, facts.kv_heads * facts.head_dim
    both = t.linear("Wqkv", x, facts.hidden, wide + 2 * narrow)
    clipped = t.map(both, (both,))
    t.name(clipped)
    q, k, v = t.split(clipped, (wide, narrow, narrow))
    q, k = t.both_turned(q, k)
    rate = float(_part(facts, "attn_config").get("attn_pdrop") or 0.0)
    return t.linear("out_proj", attend(t, q, k, v, shape, dropout=rate), wide, facts.hidden)


@function
def _feed_forward(t: Layer, x: Var) -> Var:
    """The router's noise is there at a rate of 0, too: published configs have that."""
    moe, ffn = t.facts.moe, _part(t.facts, "ffn_config")
    assert moe is not None
    if t.recipe.dropout and ffn.get("moe_jitter_eps") is not None:
        noise = t.like(x, x.width, x.item, False)
        x = t.op(Var(x.width, x.item, x.per, x.storage, x.grad), (x,), (noise,))
    logits = t.linear("layer", x, t.facts.hidden, moe.experts)
    t.held = (*t.held, logits)
    scores = t.softmax(logits)
    weights = t.op(t.new(moe.top_k, scores.item, scores.grad), (scores,), (t.new(moe.top_k, INDEX, False),))
    if ffn.get("moe_normalize_expert_weights", 1.0) is not None:
        full = t.cast(weights, 4) if t.recipe.autocast else weights
        total = t.like(full, 1, full.item, full.grad)
        t.op(total, (full,), (full, total))
        weights = t.mul(weights, total)
    t.held = (*t.held, weights, t.new(moe.top_k, INDEX, False))
    return _experts(t, x, weights, moe)


@function
def _experts(t: Layer, x: Var, weights: Var, moe: MoE) -> Var:
    """Each expert's tokens, spread evenly, added to the result in place."""
    h, rows = x.width, Routed(moe.top_k, moe.experts)
    total = t.new(h, x.item, False)
    t.held = (*t.held, total, t.new((moe.experts + 1) * moe.top_k, INDEX, False))
    held = t.held
    for number in range(moe.experts):
        places = t.new(2, INDEX, False, per=rows)
        t.held = (*held, places)
        parts = [_rows(t, h * moe.intermediate, moe.experts, last=number == moe.experts - 1) for _ in range(3)]
        taken = t.op(t.new(h, x.item, x.grad, per=rows), (x,), (places,), temp=(x.scratch(x.item),))
        out = _expert(t, taken, moe.intermediate, parts)
        share = t.op(t.new(1, weights.item, weights.grad, per=rows), (weights,), (places,))
        weighted = t.by_row(out, share)
        added = Var(h, x.item, x.per, total.storage, weighted.grad)
        total = t.add_(total, t.op(added, (weighted,), (places, weighted)))
    return total


def _rows(t: Layer, size: int, experts: int, *, last: bool) -> Var:
    """One expert's rows of the weight of all, ``size`` elements.

    Their gradient becomes one of the whole weight, of zeros elsewhere; the last expert's, which is made first, is what
    the others are added to.
    """
    part = t.constant(size, t.recipe.weights, not t.recipe.frozen, CAST)
    part.storage.external = True
    if part.grad:
        whole = experts * part.storage.bytes
        t.op(part, (), weights=(whole if last else 0,), temp=() if last else ((whole, once),))
    return part


@function
def _expert(t: Layer, x: Var, i: int, parts: Sequence[Var]) -> Var:
    h = t.facts.hidden
    t.held = (*t.held, x)
    gate = _product(t, x, parts[0], h, i)
    t.held = (*t.held, gate)
    up = _product(t, x, parts[1], h, i)
    t.held = (*t.held, up)
    gate = t.activation(gate, t.facts.activation)
    t.held = (*t.held, gate)
    return _product(t, t.mul(gate, up), parts[2], i, h)


def _product(t: Layer, x: Var, part: Var, rows: int, columns: int) -> Var:
    """A product with rows of a weight, of which autocast makes a new copy for each."""
    if not part.grad:
        return t.matmul(x, rows, columns, item=part.item, trains=False)
    if t.recipe.autocast:
        x, part = t.cast(x, 2), t.cast(part, 2)
    out = t.like(x, x.width // rows * columns, x.item, True)
    return t.op(out, (x, part), saved_factors(x, part))
