"""Laguna: attention with a softplus gate, and experts beside a shared one (``modeling_laguna.py``)."""

from __future__ import annotations

from lintfit.catalog.architectures.laguna import turned
from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import replace
from lintfit.memory.activations import llama
from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.experts import experts
from lintfit.memory.activations.llama import mlp, projected
from lintfit.memory.activations.moe import has_experts
from lintfit.memory.activations.tape import Var, function
from lintfit.memory.activations.traits import Traits


def heads(facts: ModelFacts, index: int) -> Heads:
    """A layer's heads and window; under tensor parallelism this rank's share of them."""
    shape, each = llama.heads(facts, index), facts.config.get("num_attention_heads_per_layer")
    if not isinstance(each, list) or index >= len(each):
        return shape
    return replace(shape, queries=int(each[index]) * facts.heads // int(facts.config["num_attention_heads"]))


def mixer(facts: ModelFacts, index: int) -> str:
    """Layers differ in their heads, too."""
    return f"{heads(facts, index).queries} heads"


TRAITS = Traits(heads=heads, mixer=mixer)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    y = t.rmsnorm(x)
    t.held = (x, y)
    x = t.add(x, _attention(t, y, index))
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    return t.add(x, _experts(t, y) if has_experts(t.facts, index) else mlp(t, y))


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    facts = t.facts
    shape = heads(facts, index)
    wide = shape.queries * shape.dim
    q, k, v = projected(t, x, shape)
    q, k = t.rmsnorm(q, shape.dim), t.rmsnorm(k, shape.dim)
    kind = "full_attention" if shape.window is None else "sliding_attention"
    q, k = t.both_turned(q, k, turned(facts.config, kind, shape.dim) / shape.dim, concatenated=True)
    out = attend(t, q, k, v, shape, head_major=True)
    t.held = (*t.held, out)
    by_head = facts.config.get("gating") in (True, "per-head")
    gate = t.cast(t.linear("g_proj", x, facts.hidden, shape.queries if by_head else wide), 4)
    gate = t.cast(t.map(gate, (gate,)), out.item)
    t.held = (*t.held, gate)
    return t.linear("o_proj", t.by_row(out, gate) if by_head else t.mul(out, gate), wide, facts.hidden)


@function
def _experts(t: Layer, x: Var) -> Var:
    """The shared expert runs before the router; what the routed ones give is scaled."""
    moe = t.facts.moe
    assert moe is not None
    shared = mlp(t, x, moe.shared_intermediate)
    t.held = (*t.held, shared)
    return t.add(t.map(experts(t, x, moe)), shared)
