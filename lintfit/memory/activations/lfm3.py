"""LFM 3: LFM 2's convolutions, and attention turned by tables in fp32 and gated by one number a head.

After ``modeling_lfm3.py`` of transformers; both blocks have a norm behind them.
"""

from __future__ import annotations

from lintfit.memory.activations.attention import attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.layernorm import turned_by_full_tables
from lintfit.memory.activations.lfm2 import convolved, mixer
from lintfit.memory.activations.llama import heads, mlp, projected
from lintfit.memory.activations.tape import Var, function
from lintfit.memory.activations.traits import Traits

TRAITS = Traits(mixer=mixer)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    y = t.rmsnorm(x)
    t.held = (x,)  # what goes into the mixer has no name here
    branch = convolved(t, y) if mixer(t.facts, index) else _attention(t, y, index)
    x = _added(t, x, branch)
    y = t.rmsnorm(x)
    t.held = (x, y)
    return _added(t, x, mlp(t, y, names=("w1", "w3", "w2")))


def _added(t: Layer, x: Var, branch: Var) -> Var:
    t.held = (x, branch)
    if t.facts.config.get("use_sandwich_norm"):
        branch = t.rmsnorm(branch)
    x = t.add(x, branch)
    t.held = (x,)
    return x


def _norm(t: Layer, x: Var, width: int) -> Var:
    return t.rmsnorm(x, t.facts.head_dim)


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    facts = t.facts
    shape, bias = heads(facts, index), bool(facts.config.get("attention_bias"))
    wide = shape.queries * shape.dim
    t.held = (*t.held, x)
    q, k, v = projected(t, x, shape, bias=bias, norm=_norm)
    q, k = turned_by_full_tables(t, q, k)
    out = attend(t, q, k, v, shape)
    if facts.config.get("use_attention_gate"):
        t.name(q, k, v)
        t.held = (*t.held, out)
        out = t.by_row(out, t.sigmoid(t.linear("g_proj", x, facts.hidden, shape.queries)))
    return t.linear("o_proj", out, wide, facts.hidden, bias=bias)
