"""MiniMax-01: lightning attention or attention, and experts, on a stream of normed inputs (``modeling_minimax.py``)."""

from __future__ import annotations

from lintfit.catalog.architectures._layer_kinds import LINEAR
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations import llama
from lintfit.memory.activations.attention import Heads
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.experts import experts
from lintfit.memory.activations.lightning import Blocks, lightning
from lintfit.memory.activations.tape import Var, function
from lintfit.memory.activations.traits import Traits


def mixer(facts: ModelFacts, index: int) -> str:
    """What mixes the tokens of a layer in the place of attention."""
    return LINEAR if facts.config["layer_types"][index] == LINEAR else ""


def heads(facts: ModelFacts, index: int) -> Heads:
    """A window is that of all layers with attention."""
    window = None if mixer(facts, index) else facts.sliding_window
    return Heads(facts.heads, facts.kv_heads, facts.head_dim, window)


TRAITS = Traits(mixer=mixer, heads=heads)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer: both blocks add to their own normalised input."""
    facts, moe = t.facts, t.facts.moe
    assert moe is not None
    y = t.rmsnorm(x)
    t.held = (y,)
    x = _summed(t, y, _lightning(t, y) if mixer(facts, index) else _attention(t, y, index))
    t.held = (y,)
    y = t.rmsnorm(x)
    t.held = (y,)
    return _summed(t, y, experts(t, y, moe))


def _summed(t: Layer, x: Var, branch: Var) -> Var:
    """The weighted sum of a block's input and what it gives."""
    t.held = (x, branch)
    scaled = t.map(x)
    t.held = (x, branch, scaled)
    return t.add(scaled, t.map(branch))


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    shape = heads(t.facts, index)
    q, k, v = llama.projected(t, x, shape)
    q, k = t.both_turned(q, k)
    return llama.attended(t, q, k, v, shape)


@function
def _lightning(t: Layer, x: Var) -> Var:
    facts = t.facts
    h, wide = facts.hidden, facts.heads * facts.head_dim
    states = t.activation(t.linear("qkv_proj", x, h, 3 * wide), facts.activation)
    if t.recipe.padded:
        states = t.map(states)
    t.held = (*t.held, states)
    out = t.add(lightning(t, states, Blocks(int(facts.config["block_size"]), facts.heads, facts.head_dim)))
    t.held = (*t.held, out)
    out = t.rmsnorm(out, wide)
    t.held = (*t.held[:-1], out)
    out = t.mul(t.sigmoid(t.linear("output_gate", x, h, wide)), out)
    return t.linear("out_proj", out, wide, h)
