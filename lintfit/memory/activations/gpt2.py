"""GPT-2 and GPTBigCode: LayerNorm, learned positions, fused qkv, dropout, tanh gelu (``modeling_gpt2.py``)."""

from __future__ import annotations

from lintfit.memory.activations.attention import Heads, attend, laid_out
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var, function, pairs, saved_factors


def layer(t: Layer, x: Var, index: int) -> Var:
    """One block. The dropouts are GPT-2's 0.1 unless the config says otherwise."""
    facts = t.facts
    h, i = facts.hidden, facts.intermediate
    rate = t.rate("resid_pdrop")
    wide, narrow = facts.heads * facts.head_dim, facts.kv_heads * facts.head_dim
    normed = t.layernorm(x)
    t.held = (x, normed)
    qkv = t.linear("c_attn", normed, h, wide + 2 * narrow)
    q, k, v = t.split(qkv, (wide, narrow, narrow))
    shape = Heads(facts.heads, facts.kv_heads, facts.head_dim)
    own = facts.model_type == "gpt2"
    if own and t.recipe.attention == "eager" and facts.config.get("reorder_and_upcast_attn") is True:
        out = _upcast(t, q, k, v, shape)
    else:
        out = attend(t, q, k, v, shape, dropout=t.rate("attn_pdrop"), half_softmax=own, recast=own)
    branch = t.dropped(t.linear("c_proj", out, wide, h), rate)
    x = t.add(branch, x)
    t.held = (x, branch)
    normed = t.layernorm(x)
    t.held = (x, branch, normed)
    y = t.linear("c_fc", normed, h, i)
    y = t.activation(y, facts.activation)
    return t.add(x, t.dropped(t.linear("c_proj", y, i, h), rate))


@function
def _upcast(t: Layer, q: Var, k: Var, v: Var, heads: Heads) -> Var:
    """``_upcast_and_reordered_attn``: scores in fp32 outside of autocast, in a tensor that is allocated beforehand."""
    t.name(q, k, v)
    if t.batched:
        q, k = laid_out(t, q), laid_out(t, k)
        t.name(q, k)
    full = t.cast(q, 4), t.cast(k, 4)
    empty = t.op(t.new(heads.queries, 4, False, per=pairs), ())
    # The gradients of the factors are made, then scaled (``alpha``).
    scratch = (full[0].scratch(4),)
    scores = t.op(
        t.new(heads.queries, 4, q.grad or k.grad, per=pairs), (*full, empty), saved_factors(*full), temp=scratch
    )
    made = t.softmax(t.add(scores))
    weights = t.cast(made, v.item)
    if t.rate("attn_pdrop") > 0 and t.recipe.dropout:
        weights = t.dropout(weights)
    t.scores = weights
    t.lasting = (weights,)
    if t.recipe.autocast:
        weights, v = t.cast(weights, 2), t.cast(v, 2)
    if t.batched:
        v = laid_out(t, v)
    out = t.like(q, q.width, v.item, weights.grad or v.grad)
    t.op(out, (weights, v), saved_factors(weights, v))
    return t.map(out)
