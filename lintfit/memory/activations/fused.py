"""Llama's layer with q, k and v in one projection: Baichuan, Qwen 1, InternLM 2, ChatGLM 2 and later.

Their code lives beside their weights (``modeling_baichuan.py``, ``modeling_qwen.py``, ``modeling_internlm2.py``,
``modeling_chatglm.py``), not in transformers. q, k and v are views of the projection; the rotated q and k are new.
"""

from __future__ import annotations

from typing import NamedTuple

from lintfit.memory.activations.attention import attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.llama import heads
from lintfit.memory.activations.tape import Var


class Names(NamedTuple):
    """Module names: fused projection, output, the activated half of the MLP, the other half (None: fused), and down."""

    qkv: str
    out: str
    gate: str
    up: str | None
    down: str


NAMES = {
    "baichuan": Names("W_pack", "o_proj", "gate_proj", "up_proj", "down_proj"),
    "chatglm": Names("query_key_value", "dense", "dense_h_to_4h", None, "dense_4h_to_h"),
    "internlm2": Names("wqkv", "wo", "w1", "w3", "w2"),
    "qwen": Names("c_attn", "c_proj", "w2", "w1", "c_proj"),
}


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    facts = t.facts
    names = NAMES[facts.model_type]
    h, i = facts.hidden, facts.intermediate
    shape = heads(facts, index)
    wide, narrow = shape.queries * shape.dim, shape.keys * shape.dim
    y = t.rmsnorm(x)
    t.held = (x, y)
    q, k, v = t.split(t.linear(names.qkv, y, h, wide + 2 * narrow), (wide, narrow, narrow))
    if facts.rotary_dim:
        q, k = t.both_turned(q, k)
    x = t.add(x, t.linear(names.out, attend(t, q, k, v, shape), wide, h))
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    if names.up is None:
        gate, up = t.split(t.linear(names.gate, y, h, 2 * i), (i, i))
    else:
        gate, up = t.linear(names.gate, y, h, i), t.linear(names.up, y, h, i)
    product = t.mul(t.activation(gate, facts.activation), up)
    return t.add(x, t.linear(names.down, product, i, h))
