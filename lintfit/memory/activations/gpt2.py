"""GPT-2 and GPTBigCode: LayerNorm, learned positions, fused qkv, dropout, tanh gelu (``modeling_gpt2.py``)."""

from __future__ import annotations

from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var


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
    out = attend(t, q, k, v, shape, dropout=t.rate("attn_pdrop"), half_softmax=own, recast=own)
    branch = t.dropped(t.linear("c_proj", out, wide, h), rate)
    x = t.add(branch, x)
    t.held = (x, branch)
    normed = t.layernorm(x)
    t.held = (x, branch, normed)
    y = t.linear("c_fc", normed, h, i)
    y = t.activation(y, facts.activation)
    return t.add(x, t.dropped(t.linear("c_proj", y, i, h), rate))
