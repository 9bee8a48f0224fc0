"""Nemotron-H: every layer is Mamba 2's mixer, attention without rotary, or an MLP (``modeling_nemotron_h.py``)."""

from __future__ import annotations

from lintfit.catalog.architectures import nemotron_h
from lintfit.catalog.config import Config
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.llama import attended, heads, projected
from lintfit.memory.activations.mamba2 import mixer as mamba
from lintfit.memory.activations.packages import OF_MAMBA
from lintfit.memory.activations.tape import Var
from lintfit.memory.activations.traits import Traits

MAMBA, MLP = "linear_attention", "mlp"


def mixer(facts: ModelFacts, index: int) -> str:
    """What a layer is in the place of attention."""
    kind = facts.config["layer_types"][index]
    return kind if kind in (MAMBA, MLP) else ""


TRAITS = Traits(mixer=mixer, packages=OF_MAMBA)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One block: a norm, whose product with its weight is fp32, one mixer, and the residual."""
    y = t.gemma_norm(x)
    t.held = (x, y)
    match mixer(t.facts, index):
        case "linear_attention":
            branch = mamba(t, y, nemotron_h.mixer(Config(t.facts.config, {}, t.facts.name)))
        case "mlp":
            branch = _mlp(t, y)
        case _:
            branch = _attention(t, y, index)
    return t.add(x, branch)


def _attention(t: Layer, x: Var, index: int) -> Var:
    shape = heads(t.facts, index)
    return attended(t, *projected(t, x, shape), shape)


def _mlp(t: Layer, x: Var) -> Var:
    h, i, bias = t.facts.hidden, t.facts.intermediate, bool(t.facts.config.get("mlp_bias"))
    return t.linear("down_proj", t.activation(t.linear("up_proj", x, h, i, bias=bias), t.facts.activation), i, h)
