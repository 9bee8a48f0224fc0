"""HyperCLOVA X: Llama's layer with norms behind the blocks and scaled residuals (``modeling_hyperclovax.py``)."""

from __future__ import annotations

from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.llama import attention, mlp
from lintfit.memory.activations.tape import Var


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    y = t.rmsnorm(x)
    t.held = (x, y)
    x = _added(t, x, attention(t, y, index))
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    return _added(t, x, mlp(t, y))


def _added(t: Layer, x: Var, branch: Var) -> Var:
    """``x + multiplier * norm(branch)``."""
    normed = t.rmsnorm(branch) if t.facts.config.get("use_post_norm", True) else branch
    return t.add(x, t.map(normed))
