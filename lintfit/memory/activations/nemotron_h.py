"""Nemotron-H and 3: a layer is Mamba 2's mixer, attention without rotary, an MLP, or experts.

After ``modeling_nemotron_h.py``.
"""

from __future__ import annotations

from lintfit.catalog.architectures import nemotron_h
from lintfit.catalog.config import Config
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.experts import experts, route
from lintfit.memory.activations.llama import attended, heads, projected
from lintfit.memory.activations.mamba2 import mixer as mamba
from lintfit.memory.activations.packages import OF_MAMBA
from lintfit.memory.activations.tape import Var, function
from lintfit.memory.activations.traits import Traits

MAMBA, MLP, MOE = "linear_attention", "mlp", "moe"


def mixer(facts: ModelFacts, index: int) -> str:
    """What a layer is in the place of attention."""
    kind = facts.config["layer_types"][index]
    return kind if kind in (MAMBA, MLP, MOE) else ""


def routes(facts: ModelFacts, index: int) -> bool:
    """Whether a layer is one of experts."""
    return mixer(facts, index) == MOE


TRAITS = Traits(routes=routes, mixer=mixer, packages=OF_MAMBA)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One block: a norm, whose product with its weight is fp32, one mixer, and the residual."""
    y = t.gemma_norm(x)
    t.held = (x, y)
    match mixer(t.facts, index):
        case "linear_attention":
            branch = mamba(t, y, nemotron_h.mixer(Config(t.facts.config, {}, t.facts.name)))
        case "mlp":
            branch = _mlp(t, y, t.facts.intermediate)
        case "moe":
            branch = _experts(t, y)
        case _:
            branch = _attention(t, y, index)
    return t.add(x, branch)


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    shape = heads(t.facts, index)
    return attended(t, *projected(t, x, shape), shape)


def _experts(t: Layer, x: Var) -> Var:
    """Experts without a gate, of the model's width or between two projections of a narrower one, and a shared MLP."""
    facts, held = t.facts, t.held
    moe, latent = facts.moe, int(facts.config.get("moe_latent_size") or 0)
    assert moe is not None
    bias = bool(facts.config.get("mlp_bias"))
    weights = route(t, x, moe)
    t.held = (*held, weights)
    y = t.linear("fc1_latent_proj", x, facts.hidden, latent, bias=bias) if latent else x
    y = experts(t, y, moe, weights=weights, gated=False)
    y = t.linear("fc2_latent_proj", y, latent, facts.hidden, bias=bias) if latent else y
    t.held = (*held, y)
    return t.add(y, _mlp(t, x, moe.shared_intermediate))


def _mlp(t: Layer, x: Var, i: int) -> Var:
    h, bias = t.facts.hidden, bool(t.facts.config.get("mlp_bias"))
    y = t.activation(t.linear("up_proj", x, h, i, bias=bias), t.facts.activation)
    return t.linear("down_proj", y, i, h, bias=bias)
