"""What stands behind PaddleOCR-VL's image encoder, on a tape (``PaddleOCRProjector``)."""

from __future__ import annotations

from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var, sequences
from lintfit.memory.activations.towers.merged import Merged
from lintfit.memory.activations.towers.style import tower_of


def connector(t: Layer, x: Var) -> Var:
    """Behind the encoder's own norm each image is normed, its patches put together, and projected."""
    tower, hidden = tower_of(t.facts), t.facts.hidden
    wide = tower.merge * tower.hidden
    y = t.layernorm(x, tower.hidden) if x.grad else t.like(x, x.width, 4 if t.recipe.autocast else x.item, False)
    y = t.map(t.view(t.layernorm(y, tower.hidden), wide, Merged(tower.merge)))
    y = t.activation(t.linear("linear_1", y, wide, wide, bias=True, uses=sequences), "gelu")
    return t.map(t.linear("linear_2", y, wide, hidden, bias=True, uses=sequences))
