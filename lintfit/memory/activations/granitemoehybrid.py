"""Granite 4: Mamba 2's mixer or attention without rotary, experts or none, a shared MLP, scaled residuals."""

from __future__ import annotations

from lintfit.catalog.architectures import granitemoehybrid
from lintfit.catalog.config import Config
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.experts import experts
from lintfit.memory.activations.llama import attended, heads, projected
from lintfit.memory.activations.mamba2 import mixer as mamba
from lintfit.memory.activations.packages import OF_MAMBA
from lintfit.memory.activations.tape import Var, function
from lintfit.memory.activations.traits import Traits

MAMBA = "mamba"


def mixer(facts: ModelFacts, index: int) -> str:
    """What mixes the tokens of a layer in the place of attention; all of them, where ``layer_types`` does not say."""
    types = facts.config.get("layer_types")
    attends = isinstance(types, list) and index < len(types) and types[index] in granitemoehybrid.ATTENTION
    return "" if attends else MAMBA


TRAITS = Traits(mixer=mixer, packages=OF_MAMBA)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    facts = t.facts
    y = t.rmsnorm(x)
    t.held = (x, y)
    if mixer(facts, index):
        branch = mamba(t, y, granitemoehybrid.mixer(Config(facts.config, {}, facts.name)))
    else:
        branch = _attention(t, y, index)
    return feed_forward(t, t.add(x, t.map(branch)))


def feed_forward(t: Layer, x: Var) -> Var:
    """What follows a layer's mixer: experts, or none, and the shared MLP."""
    moe = t.facts.moe
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    if moe is None:
        return t.add(x, t.map(_shared(t, y)))
    branch = experts(t, y, moe)
    if moe.shared_intermediate:
        t.held = (x, y, branch)
        branch = t.add(branch, _shared(t, y))
    return t.add(x, t.map(branch))


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    facts = t.facts
    shape = heads(facts, index)
    bias = bool(facts.config.get("attention_bias"))
    q, k, v = projected(t, x, shape, bias=bias)
    if facts.rotary_dim:
        q, k = t.both_turned(q, k)
    return attended(t, q, k, v, shape, bias=bias)


def _shared(t: Layer, x: Var) -> Var:
    """The shared MLP, gate and up in one projection."""
    h, held = t.facts.hidden, t.held
    width = t.facts.moe.shared_intermediate if t.facts.moe is not None else t.facts.intermediate
    both = t.linear("input_linear", x, h, 2 * width)
    t.held = (*held, both)
    gate, up = t.split(both, (width, width))
    product = t.mul(t.activation(gate, t.facts.activation), up)
    t.held = held
    return t.linear("output_linear", product, width, h)
