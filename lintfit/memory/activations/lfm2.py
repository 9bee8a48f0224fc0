"""LFM 2: gated short convolutions, and attention with norms on its heads; an MLP or experts.

After ``modeling_lfm2.py`` and ``modeling_lfm2_moe.py``.
"""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.attention import attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.convolution import convolution
from lintfit.memory.activations.experts import experts
from lintfit.memory.activations.llama import heads, mlp, projected
from lintfit.memory.activations.tape import Var, function
from lintfit.memory.activations.traits import Traits

CONVOLUTION = "conv"


def mixer(facts: ModelFacts, index: int) -> str:
    """What mixes the tokens of a layer in the place of attention."""
    types = facts.config.get("layer_types")
    return CONVOLUTION if isinstance(types, list) and index < len(types) and types[index] == CONVOLUTION else ""


def routes(facts: ModelFacts, index: int) -> bool:
    """Whether a layer has experts: all but the first ones."""
    return index >= int(facts.config.get("num_dense_layers") or 0)


TRAITS = Traits(routes=routes, mixer=mixer)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    y = t.rmsnorm(x)
    t.held = (x, y)
    x = t.add(convolved(t, y) if mixer(t.facts, index) else _attention(t, y, index), x)
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    if t.facts.moe is not None and routes(t.facts, index):
        return t.add(x, experts(t, y, t.facts.moe))
    return t.add(x, mlp(t, y, names=("w1", "w3", "w2")))


def _norm(t: Layer, x: Var, width: int) -> Var:
    return t.rmsnorm(x, t.facts.head_dim)


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    facts = t.facts
    shape = heads(facts, index)
    q, k, v = projected(t, x, shape, norm=_norm)
    q, k = t.both_turned(q, k)
    return t.linear("out_proj", attend(t, q, k, v, shape), shape.queries * shape.dim, facts.hidden)


def convolved(t: Layer, x: Var) -> Var:
    """``Lfm2ShortConv``: one part of a projection goes through the convolution, between products with the others."""
    h, bias, before = t.facts.hidden, bool(t.facts.config.get("conv_bias")), t.held
    kernel = int(t.facts.config["conv_L_cache"])
    if t.recipe.padded:
        x = t.map(x)
        t.held = (*before, x)
    parts = t.linear("in_proj", x, h, 3 * h, bias=bias)
    if t.batched:
        parts = t.copied_back(parts)  # from channel by channel; of one sequence that is a view
    t.held = (*t.held, parts)
    into, out_of, x = t.split(parts, (h, h, h))
    x = t.mul(into, x)
    t.held = (*t.held, x)
    x = convolution(t, x, "conv", kernel, activated=False, bias=bias)
    x = t.mul(out_of, x)
    t.held = (*t.held, x)
    out = t.linear("out_proj", x, h, h, bias=bias)
    t.held = before
    return out
