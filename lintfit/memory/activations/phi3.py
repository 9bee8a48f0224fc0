"""Phi-3: the Llama layer with q, k, v in one projection and gate, up in another (``modeling_phi3.py``)."""

from __future__ import annotations

from lintfit.memory.activations.attention import attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.llama import heads
from lintfit.memory.activations.tape import Var


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer. v stays a view of the fused projection; the rotated q and k come out of a ``torch.cat``."""
    facts = t.facts
    h, i = facts.hidden, facts.intermediate
    shape = heads(facts, index)
    wide, narrow = shape.queries * shape.dim, shape.keys * shape.dim
    y = t.rmsnorm(x)
    t.held = (x, y)
    qkv = t.linear("qkv_proj", y, h, wide + 2 * narrow)
    q, k, v = t.split(qkv, (wide, narrow, narrow))
    share = float(facts.config.get("partial_rotary_factor") or 1.0)
    q, k = t.both_turned(q, k, share, concatenated=True)
    out = attend(t, q, k, v, shape, head_major=True)
    rate = t.rate("resid_pdrop")
    x = t.add(x, t.dropped(t.linear("o_proj", out, wide, h), rate))
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    both = t.linear("gate_up_proj", y, h, 2 * i)
    t.name(both)
    gate, up = t.split(both, (i, i))
    product = t.mul(up, t.activation(gate, facts.activation))
    branch = t.linear("down_proj", product, i, h)
    t.held = (x,)
    return t.add(x, t.dropped(branch, rate))
