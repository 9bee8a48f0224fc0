"""What stands behind the image encoders of Aya Vision and Command A Vision, on a tape.

Sources: ``modeling_aya_vision.py``, ``modeling_cohere2_vision.py`` (``*MultiModalProjector``).
"""

from __future__ import annotations

from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var
from lintfit.memory.activations.towers.encoder import last_norm
from lintfit.memory.activations.towers.merged import Merged
from lintfit.memory.activations.towers.style import tower_of


def connector(t: Layer, x: Var) -> Var:
    """Neighbouring patches are put together, normed (Aya) and projected; Command A's encoder norms them before."""
    config, width, hidden = t.facts.config, tower_of(t.facts).hidden, t.facts.hidden
    each, normed = int(config.get("downsample_factor") or 2) ** 2, t.facts.model_type == "aya_vision"
    wide = int(config.get("alignment_intermediate_size") or hidden)
    y = x if normed else last_norm(t, x)
    y = t.map(t.view(y, width * each, Merged(each)))
    y = t.layernorm(y, y.width) if normed else y
    y = t.map(y)  # the rows lie the other way round
    both = t.linear("linear_1", y, y.width, wide, bias=True)
    what, gate = t.split(both, (wide // 2, wide // 2))
    return t.linear("linear_2", t.mul(t.activation(gate, "silu"), what), wide // 2, hidden, bias=True)
