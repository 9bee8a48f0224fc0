"""What stands behind MoonViT in Kimi K2.5, on a tape (``modeling_kimi_k25.py``)."""

from __future__ import annotations

from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var
from lintfit.memory.activations.towers.merged import Merged
from lintfit.memory.activations.towers.style import tower_of


def connector(t: Layer, x: Var) -> Var:
    """Patches are normed, gathered by tokens, averaged over frames, normed again and projected side by side.

    The first norm is the encoder's: where that is frozen, and leaves no gradient, it keeps nothing.
    """
    tower, hidden = tower_of(t.facts), t.facts.hidden
    wide = tower.merge * tower.hidden
    y = t.layernorm(x, tower.hidden) if x.grad else t.like(x, tower.hidden, 4 if t.recipe.autocast else x.item, False)
    y = t.map(t.map(y))
    y = t.view(t.layernorm(y, tower.hidden), wide, Merged(tower.merge))
    y = t.activation(t.linear("in_proj", y, wide, wide, bias=True), "gelu")
    return t.linear("out_proj", y, wide, hidden, bias=True)
