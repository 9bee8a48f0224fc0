"""BLOOM, MPT and Falcon: LayerNorm and a fused qkv projection; the first two only have eager attention.

Sources: ``modeling_bloom.py``, ``modeling_mpt.py``, ``modeling_falcon.py``.
"""

from __future__ import annotations

from lintfit.memory.activations.attention import Heads, attend, eager, repeat
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var, function

NAMES = {
    "bloom": ("query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"),
    "mpt": ("Wqkv", "out_proj", "up_proj", "down_proj"),
    "falcon": ("query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"),
}


def layer(t: Layer, x: Var, index: int) -> Var:
    """One block. Falcon's attention and MLP run in parallel, on one norm or, since its second design, on two."""
    facts = t.facts
    rate = float(facts.config.get("hidden_dropout") or 0.0)
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
            return t.add(x, t.residual_dropout(t.add(_mlp(t, z), branch), rate))
    branch = _attention(t, y)
    x = t.add(x, t.residual_dropout(branch, rate))
    t.held = (x,)
    y = t.layernorm(x)
    t.held = (x, y)
    return t.add(x, t.residual_dropout(_mlp(t, y), rate))


def _mlp(t: Layer, x: Var) -> Var:
    facts = t.facts
    _, _, up, down = NAMES[facts.model_type]
    y = t.linear(up, x, facts.hidden, facts.intermediate)
    # BLOOM's own GELU saves its input, whatever its formula (``GeLUFunction``).
    return t.linear(down, t.activation(y, "gelu"), facts.intermediate, facts.hidden)


@function
def _attention(t: Layer, x: Var) -> Var:
    facts = t.facts
    name, out_name, _, _ = NAMES[facts.model_type]
    h, dim = facts.hidden, facts.head_dim
    wide, narrow = facts.heads * dim, facts.kv_heads * dim
    parts = t.split(t.linear(name, x, h, wide + 2 * narrow), (wide, narrow, narrow))
    q, k, v = parts
    if facts.model_type != "falcon":
        drops = bool(facts.config.get("attention_dropout")) and t.recipe.dropout
        shape, bloom = Heads(facts.heads, facts.heads, dim), facts.model_type == "bloom"
        t.name(v)
        out = eager(t, q, k, v, shape, drops=drops, one_product=bloom, names_scores=not bloom)
        return t.linear(out_name, out, wide, h)
    outer, t.held = t.held, (*t.held, v)
    shape = Heads(facts.heads, facts.kv_heads, dim)
    if shape.keys < shape.queries:
        k, v = repeat(t, k, shape), repeat(t, v, shape)
    q, k = t.both_turned(q, k)
    out = attend(t, q, k, v, Heads(facts.heads, facts.heads, dim), half_softmax=True, keeps_product=True)
    out = t.linear(out_name, out, wide, h)
    t.held = outer
    return out
