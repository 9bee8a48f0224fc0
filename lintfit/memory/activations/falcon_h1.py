"""Falcon H1: Mamba 2's mixer and attention side by side in every layer, with multipliers all along."""

from __future__ import annotations

from lintfit.catalog.architectures import falcon_h1
from lintfit.catalog.config import Config
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.llama import attended, heads, projected
from lintfit.memory.activations.mamba2 import Style, mixer
from lintfit.memory.activations.packages import OF_MAMBA
from lintfit.memory.activations.tape import Var, function
from lintfit.memory.activations.traits import Traits


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    y = t.rmsnorm(x)
    t.held = (x, y)
    shape = falcon_h1.mixer(Config(t.facts.config, {}, t.facts.name))
    mixed = t.map(mixer(t, y, shape, style(t.facts)))
    t.held = (x, y, mixed)
    attended = t.map(_attention(t, t.map(y), index))
    x = t.add(x, t.add(mixed, attended))
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    return t.add(x, _mlp(t, y))


def style(facts: ModelFacts) -> Style:
    """How the mixer is written."""
    if not facts.config["mamba_rms_norm"]:
        return Style(multiplied=True, gate="alone")
    return Style(multiplied=True, gate="behind norm" if facts.config["mamba_norm_before_gate"] else "before norm")


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    facts, held = t.facts, t.held
    t.held = (*held, x)
    shape = heads(facts, index)
    bias = bool(facts.config.get("attention_bias"))
    q, k, v = projected(t, x, shape, bias=bias)
    q, k = t.both_turned(q, t.map(k))
    out = attended(t, q, k, v, shape, bias=bias)
    t.held = held
    return out


def _mlp(t: Layer, x: Var) -> Var:
    h, i, held = t.facts.hidden, t.facts.intermediate, t.held
    bias = bool(t.facts.config.get("mlp_bias"))
    up = t.linear("up_proj", x, h, i, bias=bias)
    t.held = (*held, up)
    gate = t.activation(t.map(t.linear("gate_proj", x, h, i, bias=bias)), t.facts.activation)
    product = t.mul(up, gate)
    t.held = held
    return t.map(t.linear("down_proj", product, i, h, bias=bias))


TRAITS = Traits(packages=OF_MAMBA)
