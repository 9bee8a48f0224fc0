"""What stands behind LFM 2 VL's image encoder, on a tape (``Lfm2VlMultiModalProjector``)."""

from __future__ import annotations

from lintfit.catalog.architectures.lfm2_vl import DEFAULTS
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var
from lintfit.memory.activations.towers.encoder import last_norm
from lintfit.memory.activations.towers.merged import Merged
from lintfit.memory.activations.towers.style import tower_of


def connector(t: Layer, x: Var) -> Var:
    """Patches are normed; of every picture those of a token are put together, normed and projected."""
    config, width, hidden = {**DEFAULTS, **t.facts.config}, tower_of(t.facts).hidden, t.facts.hidden
    each, bias, inner = (
        int(config["downsample_factor"]) ** 2,
        bool(config["projector_bias"]),
        config["projector_hidden_size"],
    )
    y = last_norm(t, x)
    y = t.map(t.view(y, width * each, Merged(each)))
    y = t.layernorm(y, y.width) if config["projector_use_layernorm"] else y
    y = t.map(y)  # the rows lie the other way round
    y = t.linear("linear_1", y, y.width, inner, bias=bias)
    y = t.linear("linear_2", t.activation(y, "gelu"), inner, hidden, bias=bias)
    return t.map(y)  # the pictures' tokens are put together
