"""Granite 3 MoE with a shared MLP beside the routed experts (``modeling_granitemoeshared.py``)."""

from __future__ import annotations

from lintfit.memory.activations import llama
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.granitemoehybrid import feed_forward
from lintfit.memory.activations.tape import Var


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    y = t.rmsnorm(x)
    t.held = (x, y)
    return feed_forward(t, t.add(x, t.map(llama.attention(t, y, index))))
