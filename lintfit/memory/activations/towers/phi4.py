"""What stands behind Phi 4 multimodal's image encoder, on a tape (``modeling_phi4_multimodal.py``)."""

from __future__ import annotations

from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var
from lintfit.memory.activations.towers.merged import Merged
from lintfit.memory.activations.towers.style import tower_of

AVERAGED = 4
"""Patches that become one token."""


def connector(t: Layer, x: Var) -> Var:
    """Patches are averaged two by two, put together row by row, and projected; rows' ends are not counted."""
    width, hidden = tower_of(t.facts).hidden, t.facts.hidden
    y = t.op(t.new(width, x.item, x.grad, per=Merged(AVERAGED)), (x,), (x,))
    y = t.map(t.map(t.map(y)))
    y = t.linear("img_projection_up", y, width, hidden, bias=True)
    return t.linear("img_projection_down", t.activation(y, "gelu"), hidden, hidden, bias=True)
