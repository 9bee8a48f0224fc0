"""Jamba: Mamba 1's mixer, or attention without rotary, and a gated MLP or experts (``modeling_jamba.py``)."""

from __future__ import annotations

from lintfit.catalog.architectures import jamba
from lintfit.catalog.config import Config
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.experts import experts
from lintfit.memory.activations.llama import attended, heads, mlp, projected
from lintfit.memory.activations.mamba1 import mixer as mamba
from lintfit.memory.activations.packages import OF_MAMBA
from lintfit.memory.activations.tape import Var, function
from lintfit.memory.activations.traits import Traits

MAMBA = "mamba"


def mixer(facts: ModelFacts, index: int) -> str:
    """What mixes the tokens of a layer in the place of attention."""
    return "" if jamba.attends(_config(facts), index) else MAMBA


def routes(facts: ModelFacts, index: int) -> bool:
    """Whether a layer has experts."""
    return jamba.routes(_config(facts), index)


TRAITS = Traits(mixer=mixer, routes=routes, packages=OF_MAMBA)


def _config(facts: ModelFacts) -> Config:
    return Config(facts.config, {}, facts.name)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    facts = t.facts
    y = t.rmsnorm(x)
    t.held = (x, y)
    mixes = mixer(facts, index)
    x = t.add(x, mamba(t, y, jamba.mixer(_config(facts))) if mixes else _attention(t, y, index))
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    routed = facts.moe is not None and routes(facts, index)
    return t.add(x, experts(t, y, facts.moe) if facts.moe is not None and routed else mlp(t, y))


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    shape = heads(t.facts, index)
    q, k, v = projected(t, x, shape)
    return attended(t, q, k, v, shape)
