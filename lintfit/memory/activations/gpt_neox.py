"""GPT-NeoX (Pythia): LayerNorm, fused qkv, partial rotary, parallel residual (``modeling_gpt_neox.py``)."""

from __future__ import annotations

from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var, function


def layer(t: Layer, x: Var, index: int) -> Var:
    """One layer; attention and MLP both read the layer's input unless ``use_parallel_residual`` is off."""
    facts = t.facts
    h, i = facts.hidden, facts.intermediate
    rate = t.rate("hidden_dropout")
    normed = t.layernorm(x)
    t.held = (x, normed)
    branch = t.dropped(_attention(t, normed), rate)
    parallel = facts.config.get("use_parallel_residual", True)
    if not parallel:
        x = t.add(branch, x)
    t.held = (x, branch) if parallel else (x,)
    normed = t.layernorm(x)
    t.held = (*t.held, normed)
    y = t.linear("dense_h_to_4h", normed, h, i)
    y = t.activation(y, facts.activation)
    y = t.dropped(t.linear("dense_4h_to_h", y, i, h), rate)
    return t.add(t.add(y, branch), x) if parallel else t.add(y, x)


@function
def _attention(t: Layer, x: Var) -> Var:
    facts = t.facts
    h = facts.hidden
    qkv = t.linear("query_key_value", x, h, 3 * h)
    q, k, v = t.split(qkv, (h,) * 3)
    rope = facts.config.get("rope_parameters")
    share = rope.get("partial_rotary_factor") if isinstance(rope, dict) else None
    share = float(share or facts.config.get("rotary_pct") or 0.25)
    q, k = t.both_turned(q, k, share, concatenated=True)
    out = attend(t, q, k, v, Heads(facts.heads, facts.heads, facts.head_dim), head_major=True)
    return t.linear("dense", out, h, h)
