"""GPT-J, CodeGen and GPT-Neo: eager scores in fp32, GELU as a formula (``modeling_gptj.py`` and its relatives)."""

from __future__ import annotations

from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var, function, pairs, positions, saved_factors


def layer(t: Layer, x: Var, index: int) -> Var:
    """One block; GPT-J and CodeGen run attention and MLP in parallel, GPT-Neo one after the other."""
    facts = t.facts
    rate = t.rate("resid_pdrop", "resid_dropout")
    y = t.layernorm(x)
    t.held = (x, y)
    branch = t.dropped(_attention(t, y), rate)
    if facts.model_type != "gpt_neo":
        t.held = (x, y, branch)
        return t.add(t.add(branch, t.dropped(_mlp(t, y), rate)), x)
    x = t.add(x, branch)
    t.held = (x,)
    y = t.layernorm(x)
    t.held = (x, y)
    return t.add(x, t.dropped(_mlp(t, y), rate))


def _mlp(t: Layer, x: Var) -> Var:
    facts = t.facts
    names = ("c_fc", "c_proj") if facts.model_type == "gpt_neo" else ("fc_in", "fc_out")
    y = t.activation(t.linear(names[0], x, facts.hidden, facts.intermediate), facts.activation)
    return t.linear(names[1], y, facts.intermediate, facts.hidden)


@function
def _attention(t: Layer, x: Var) -> Var:
    """FlashAttention gives its result back in the place of the weights (``GPTJFlashAttention2``)."""
    facts = t.facts
    h = facts.hidden
    if facts.model_type == "codegen":
        # The heads of its four groups do not stand side by side: ``_split_heads`` copies each part.
        parts = t.split(t.linear("qkv_proj", x, h, 3 * h), (h,) * 3)
        t.name(*parts)
        q, v, k = (t.map(part) for part in parts)
    else:
        q, k, v = (t.linear(name, x, h, h) for name in ("q_proj", "k_proj", "v_proj"))
    if facts.model_type != "gpt_neo":
        turned = facts.rotary_dim or facts.head_dim
        share = turned / facts.head_dim
        k, q = (_turned(t, part, share, _tables(t, turned, part.item)) for part in (k, q))
    if t.recipe.attention == "flash_attention_2":
        t.scores = out = attend(t, q, k, v, Heads(facts.heads, facts.heads, facts.head_dim))
        t.lasting = (out,)
        return t.linear("out_proj", out, h, h)
    return t.linear("out_proj", _scored(t, q, k, v), h, h)


def _tables(t: Layer, turned: int, item: int) -> tuple[Var, ...]:
    """Sines and cosines as wide as what they turn, made anew for queries and for keys: CodeGen's in fp32, GPT-J's in
    the dtype of the keys."""
    item = 4 if t.facts.model_type == "codegen" else item
    return t.new(turned, item, False, per=positions), t.new(turned, item, False, per=positions)


def _turned(t: Layer, x: Var, share: float, tables: tuple[Var, ...]) -> Var:
    """Queries or keys, by fp32 tables in CodeGen. Where a part is turned, both parts have names of their own."""
    item = 4 if t.facts.model_type == "codegen" and not t.graph else x.item
    turned = t.turned(x, share, tables, item=item)
    if share == 1:
        return turned
    t.name(x, turned)
    return t.op(t.like(x, x.width, item, x.grad), (turned,))


@function
def _scored(t: Layer, q: Var, k: Var, v: Var) -> Var:
    """Queries and keys are cast to fp32; the softmax is fp32, its copy in the values' dtype goes into the product."""
    facts = t.facts
    t.name(q, k, v)
    given = q, k
    q, k = t.cast(q, 4), t.cast(k, 4)
    t.name(q, k)
    if t.batched:
        q, k = (t.map(part) if part in given else part for part in (q, k))
    if t.recipe.autocast:  # whose product takes half-precision copies of the two
        q, k = t.cast(q, 2), t.cast(k, 2)
    scores = t.op(t.new(facts.heads, q.item, q.grad or k.grad, per=pairs), (q, k), saved_factors(q, k))
    # GPT-Neo masks by ``torch.where``, whose condition is a slice of a buffer; GPT-J divides.
    scores, held = t.map(scores), t.held
    scores = t.cast(scores, max(scores.item, t.recipe.opening))
    t.name(scores)
    weights = t.softmax(t.cast(scores, 4))
    t.held = held
    weights = t.cast(weights, v.item)
    rate = t.rate("attn_pdrop", "attention_dropout")
    weights = t.scores = t.dropped(weights, rate)
    t.lasting = (weights,)
    if t.recipe.autocast:
        weights, v = t.cast(weights, 2), t.cast(v, 2)
    v = t.map(v) if t.batched else v
    out = t.op(t.like(q, q.width, v.item, scores.grad or v.grad), (weights, v), saved_factors(weights, v))
    return t.map(out)
