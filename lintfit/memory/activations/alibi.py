"""BLOOM, MPT and Falcon: LayerNorm and a fused qkv projection; the first two only have eager attention.

Sources: ``modeling_bloom.py``, ``modeling_mpt.py``, ``modeling_falcon.py``.
"""

from __future__ import annotations

from collections.abc import Callable

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.attention import Heads, attend, eager, laid_out, repeat, spread
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.frames import biased_heads
from lintfit.memory.activations.tape import Var, function, pairs, saved_factors
from lintfit.memory.activations.traits import Traits

NAMES = {
    "bloom": ("query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"),
    "mpt": ("Wqkv", "out_proj", "up_proj", "down_proj"),
    "falcon": ("query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"),
}


GELU_STEPS = 4
"""Tensors beside the gradient at the fullest point of ``bloom_gelu_back``."""


def layer(t: Layer, x: Var, index: int) -> Var:
    """One block. Falcon's attention and MLP run in parallel, on one norm or, since its second design, on two."""
    facts = t.facts
    rate = t.rate("hidden_dropout")
    y = t.layernorm(x)
    t.held = (x, y)
    if facts.model_type == "falcon":
        new = bool(facts.config.get("new_decoder_architecture"))
        if new or facts.config.get("parallel_attn", True):
            two = new and facts.config.get("num_ln_in_parallel_attn") in (None, 2)
            z = t.layernorm(x) if two else y
            t.held = (x, y, z)
            branch = _attention(t, y)
            t.held = (*t.held, branch)
            return t.add(x, t.dropped(t.add(_mlp_apart(t, z), branch), rate))
    if facts.model_type == "bloom":
        x = _added(t, x, y, rate, _mixed)
        t.held = (x,)
        y = t.layernorm(x)
        t.held = (x, y)
        return _added(t, x, y, rate, _mlp)
    branch = _attention(t, y)
    falcon = facts.model_type == "falcon"
    named = (y, branch) if falcon else (branch,)
    x = t.add(x, t.dropped(branch, t.rate("attention_dropout") if falcon else rate))
    t.held = (*named, x)
    y = t.layernorm(x)
    t.held = (*named, x, y)
    return t.add(x, t.dropped(_mlp_apart(t, y), rate))


@function
def _added(t: Layer, x: Var, y: Var, rate: float, block: Callable[[Layer, Var], Var]) -> Var:
    """BLOOM's blocks add what they give to the stream themselves, with all their names."""
    return t.add(x, t.dropped(block(t, y), rate))


def _mlp(t: Layer, x: Var) -> Var:
    facts = t.facts
    _, _, up, down = NAMES[facts.model_type]
    y = _linear(t, up, x, facts.hidden, facts.intermediate)
    # BLOOM's own GELU saves its input, whatever its formula, and works its gradient out in steps (``GeLUFunction``).
    bloom = facts.model_type == "bloom"
    made = t.map(y, (y,), temp=(y.scratch(GELU_STEPS * y.item),) if bloom else ())
    t.held = (*t.held, made)
    return _linear(t, down, made, facts.intermediate, facts.hidden)


@function
def _mlp_apart(t: Layer, x: Var) -> Var:
    """Falcon's and MPT's, whose names are gone when its result is added."""
    return _mlp(t, x)


def _linear(t: Layer, name: str, x: Var, inner: int, outer: int) -> Var:
    """A linear layer. Falcon's multiplies by ``weight.T``, and adds its bias outside of autocast's product: an fp32 one
    makes the result fp32, too."""
    falcon = _views(t.facts)
    lifted = t.recipe.weights if falcon and t.facts.config.get("bias") else 0
    return t.linear(name, x, inner, outer, views=falcon, lifted=lifted)


@function
def _attention(t: Layer, x: Var) -> Var:
    return _mixed(t, x)


def _mixed(t: Layer, x: Var) -> Var:
    facts = t.facts
    name, out_name, _, _ = NAMES[facts.model_type]
    h, dim = facts.hidden, facts.head_dim
    wide, narrow = facts.heads * dim, facts.kv_heads * dim
    q, k, v = t.split(_linear(t, name, x, h, wide + 2 * narrow), (wide, narrow, narrow))
    if facts.model_type != "falcon":
        drops = t.rate("attention_dropout") > 0 and t.recipe.dropout
        shape, bloom = Heads(facts.heads, facts.heads, dim), facts.model_type == "bloom"
        t.name(v)
        out = eager(t, q, k, v, shape, drops=drops, one_product=bloom, names_scores=not bloom)
        return t.linear(out_name, out, wide, h)
    outer, t.held = t.held, (*t.held, v)
    out = _linear(t, out_name, _falcon(t, q, k, v, x.item), wide, h)
    t.held = outer
    return out


def _falcon(t: Layer, q: Var, k: Var, v: Var, item: int) -> Var:
    """Falcon's first design has one head of keys and values, which it leaves to the product to spread; the second
    copies its groups for all heads in front of the rotary.

    With biases by position (``alibi``) nothing is turned: they are in the mask. ``item``: bytes of an element of what
    the layer's norm gave.
    """
    facts, biased = t.facts, biased_heads(t.facts)
    shape = Heads(facts.heads, facts.kv_heads, facts.head_dim)
    if shape.keys == 1:
        k, v = t.map(k), t.map(v)
    elif shape.keys < shape.queries:
        q, k, v = t.map(q), repeat(t, k, shape), repeat(t, v, shape)
        shape = Heads(facts.heads, facts.heads, facts.head_dim)
    single = shape.keys < shape.queries
    if not biased:
        q, k = t.both_turned(q, k)
        return attend(t, q, k, v, shape, dropout=0.0, half_softmax=True, keeps_product=True, broadcasts=single)
    if t.recipe.attention == "eager":
        return _biased(t, q, k, v, shape, item)
    mask = t.new(shape.queries, 4 if t.recipe.upcast_head else t.recipe.weights, False, per=pairs)
    mask.storage.external = True
    return attend(t, q, k, v, shape, mask=mask, broadcasts=single)


def _biased(t: Layer, q: Var, k: Var, v: Var, shape: Heads, item: int) -> Var:
    """Eager attention adds the biases to the scores, too, in fp32; the softmax is in the dtype of ``item``."""
    t.name(q, k, v)
    if shape.keys < shape.queries:
        k, v = spread(t, k, shape), spread(t, v, shape)
    if t.batched:
        q, k = laid_out(t, q), laid_out(t, k)
    if t.recipe.autocast:
        q, k = t.cast(q, 2), t.cast(k, 2)
    grad = q.grad or k.grad
    scores = t.op(t.new(shape.queries, q.item, grad, per=pairs), (q, k), saved_factors(q, k))
    full = t.cast(scores, 4)
    biased, held = t.add(full), t.held
    t.held = (*held, scores, full, biased)
    masked = t.add(biased)
    t.held = (*t.held, masked)
    made = t.softmax(t.cast(masked, item))
    made = t.dropped(made, t.rate("attention_dropout"))
    t.held, t.scores, t.lasting = held, made, (made,)
    weights, v = t.cast(made, q.item), t.cast(v, q.item)
    if t.batched:
        v = laid_out(t, v)
    out = t.like(q, q.width, q.item, grad or v.grad)
    t.op(out, (weights, v), saved_factors(weights, v))
    return t.map(out)


def _views(facts: ModelFacts) -> bool:
    return facts.model_type == "falcon"


TRAITS = Traits(views=_views)
