"""BioGPT: LayerNorm, learned positions, dropout, eager softmax in the layer's dtype (``modeling_biogpt.py``)."""

from __future__ import annotations

from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var, function


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    facts = t.facts
    h, i, rate = facts.hidden, facts.intermediate, t.rate("hidden_dropout_prob")
    y = t.layernorm(x)
    t.held = (x, y)
    branch = _attention(t, y)
    t.held = (x,)
    x = t.add(x, t.dropped(branch, rate))
    t.held = (x,)
    y = t.layernorm(x)
    t.held = (x, y)
    y = t.linear("fc1", y, h, i, bias=True)
    t.held = (x, y)
    y = t.activation(y, facts.activation)
    t.held = (x, y)
    y = t.dropped(y, t.rate("activation_dropout"))
    branch = t.linear("fc2", y, i, h, bias=True)
    t.held = (x,)
    return t.add(x, t.dropped(branch, rate))


@function
def _attention(t: Layer, x: Var) -> Var:
    h, shape = t.facts.hidden, Heads(t.facts.heads, t.facts.heads, t.facts.head_dim)
    parts: list[Var] = []
    for name in ("q_proj", "k_proj", "v_proj"):
        parts.append(t.linear(name, x, h, h, bias=True))
        t.name(parts[-1])
    rate = t.rate("attention_probs_dropout_prob")
    return t.linear(
        "out_proj", attend(t, parts[0], parts[1], parts[2], shape, dropout=rate, half_softmax=True), h, h, bias=True
    )
