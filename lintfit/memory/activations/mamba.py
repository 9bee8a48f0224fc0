"""Mamba, Falcon Mamba and Mamba 2: a norm, the mixer, and a stream in fp32 (``modeling_mamba.py`` and its copies)."""

from __future__ import annotations

from lintfit.catalog.architectures import mamba, mamba2
from lintfit.catalog.config import Config
from lintfit.memory.activations import mamba1
from lintfit.memory.activations import mamba2 as second
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.packages import OF_MAMBA
from lintfit.memory.activations.tape import Var
from lintfit.memory.activations.traits import Traits

TRAITS = Traits(packages=OF_MAMBA)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One layer. The norm takes the stream in the weights' dtype."""
    facts = t.facts
    y = t.rmsnorm(t.cast(x, t.recipe.weights))
    if facts.config.get("residual_in_fp32", True):
        x = t.cast(x, 4)
    t.held = (x, y)
    config = Config(facts.config, {}, facts.name)
    if facts.model_type == "mamba2":
        return t.add(x, second.mixer(t, y, mamba2.mixer(config)))
    return t.add(x, mamba1.mixer(t, y, mamba.mixer(config)))
