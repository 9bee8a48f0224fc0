"""ModernBERT's layers, and those of its decoder: norms without a bias, a gated MLP, windows in two layers of three.

Sources: ``modeling_modernbert.py``, ``modeling_modernbert_decoder.py``.
"""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.esm import turned_in_full
from lintfit.memory.activations.tape import Var, function
from lintfit.memory.activations.traits import Traits


def heads(facts: ModelFacts, index: int) -> Heads:
    """A layer's heads and its window, to each side of an encoder's token."""
    types = facts.config.get("layer_types") or ()
    slides = index < len(types) and types[index] == "sliding_attention"
    return Heads(facts.heads, facts.heads, facts.head_dim, facts.sliding_window if slides else None)


def unread(facts: ModelFacts) -> bool:
    """Whether the head scores none but the masked words."""
    return bool(facts.config.get("sparse_prediction"))


TRAITS = Traits(heads=heads, unnormed=lambda facts, index: index == 0, unread=unread)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One layer; the first takes what the embeddings' norm gave."""
    t.held = (x,)
    normed = t.layernorm(x) if index else x
    t.held = (x, normed)
    branch = _attention(t, normed, index)
    t.held = (x, branch)
    x = t.add(x, branch)
    t.held = (x, branch)
    normed = t.layernorm(x)
    t.held = (x, branch, normed)
    return t.add(x, _mlp(t, normed))


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    facts, h, bias = t.facts, t.facts.hidden, bool(t.facts.config.get("attention_bias"))
    held = t.held
    if facts.model_type == "modernbert":
        both = t.linear("Wqkv", x, h, 3 * h, bias=bias)
        held = (*held, both)
        q, k, v = t.split(both, (h, h, h))
    else:
        q, k, v = (t.linear(name, x, h, h, bias=bias) for name in ("q_proj", "k_proj", "v_proj"))
    t.held = (*held, q, k, v)
    q, k = turned_in_full(t, q, k)
    t.held = (*held, q, k, v)
    y = attend(t, q, k, v, heads(facts, index), dropout=t.rate("attention_dropout"))
    t.held = (*t.held, y)
    y = t.linear("Wo", y, h, h, bias=bias)
    t.held = (*t.held, y)
    return t.dropped(y, t.rate("attention_dropout"))


@function
def _mlp(t: Layer, x: Var) -> Var:
    h, i, bias = t.facts.hidden, t.facts.intermediate, bool(t.facts.config.get("mlp_bias"))
    held = t.held
    both = t.linear("Wi", x, h, 2 * i, bias=bias)
    t.held = (*held, both)
    t.held = (*held, both)
    given, gate = t.split(both, (i, i))
    y = t.dropped(t.mul(t.activation(given, t.facts.activation), gate), t.rate("mlp_dropout"))
    return t.linear("Wo", y, i, h, bias=bias)
