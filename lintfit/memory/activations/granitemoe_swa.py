"""Granite MoE Swash: Granite Swash's attention before experts, with a shared MLP or none."""

from __future__ import annotations

from lintfit.memory.activations import granite_swa
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.granitemoehybrid import feed_forward
from lintfit.memory.activations.tape import Var

TRAITS = granite_swa.TRAITS


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    y = t.rmsnorm(x)
    t.held = (x, y)
    return feed_forward(t, t.add(x, t.map(granite_swa.attention(t, y, index))))
