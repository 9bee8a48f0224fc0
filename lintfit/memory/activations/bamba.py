"""Bamba: Mamba 2's mixer, or attention that turns half of each head, and a gated MLP (``modeling_bamba.py``)."""

from __future__ import annotations

from lintfit.catalog.architectures import bamba
from lintfit.catalog.config import Config
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.llama import attended, heads, mlp, projected
from lintfit.memory.activations.mamba2 import mixer as mamba
from lintfit.memory.activations.packages import OF_MAMBA
from lintfit.memory.activations.tape import Var, function
from lintfit.memory.activations.traits import Traits

MAMBA = "mamba"


def mixer(facts: ModelFacts, index: int) -> str:
    """What mixes the tokens of a layer in the place of attention."""
    return "" if facts.config["layer_types"][index] == bamba.ATTENTION else MAMBA


TRAITS = Traits(mixer=mixer, packages=OF_MAMBA)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    facts = t.facts
    y = t.rmsnorm(x)
    t.held = (x, y)
    mixes = mixer(facts, index)
    x = t.add(x, mamba(t, y, bamba.mixer(Config(facts.config, {}, facts.name))) if mixes else _attention(t, y, index))
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    return t.add(x, mlp(t, y))


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    shape = heads(t.facts, index)
    q, k, v = projected(t, x, shape)
    q, k = t.both_turned(q, k, t.facts.rotary_dim / shape.dim, concatenated=True)
    return attended(t, q, k, v, shape, head_major=True)
