"""AFMoE: attention with a gate, rotary within windows only, norms around both blocks (``modeling_afmoe.py``)."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.attention import attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.experts import experts, route
from lintfit.memory.activations.llama import heads, mlp, projected
from lintfit.memory.activations.tape import Var, function
from lintfit.memory.activations.traits import Traits


def routes(facts: ModelFacts, index: int) -> bool:
    """Whether a layer has experts: all but the first ones."""
    return index >= int(facts.config.get("num_dense_layers") or 0)


TRAITS = Traits(routes=routes)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    y = t.full_norm(x)
    t.held = (x, y)
    x = t.add(x, t.full_norm(_attention(t, y, index)))
    t.held = (x,)
    y = t.full_norm(x)
    t.held = (x, y)
    return t.add(x, t.full_norm(_experts(t, y) if routes(t.facts, index) else mlp(t, y)))


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    facts = t.facts
    shape = heads(facts, index)
    wide = shape.queries * shape.dim
    q, k, v = projected(t, x, shape)
    gate = t.linear("gate_proj", x, facts.hidden, wide)
    t.held = (*t.held, gate)
    q, k = t.full_norm(q, shape.dim), t.full_norm(k, shape.dim)
    if shape.window is not None:
        q, k = t.both_turned(q, k)
    out = attend(t, q, k, v, shape)
    t.held = (*t.held, out)
    return t.linear("o_proj", t.mul(out, t.sigmoid(gate)), wide, facts.hidden)


@function
def _experts(t: Layer, x: Var) -> Var:
    """Routed experts beside the shared one, which runs between the router and these."""
    moe = t.facts.moe
    assert moe is not None
    weights = route(t, x, moe)
    t.held = (*t.held, weights)
    shared = mlp(t, x, moe.shared_intermediate)
    t.held = (*t.held, shared)
    return t.add(shared, experts(t, x, moe, weights=weights))
