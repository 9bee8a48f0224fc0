"""BioGPT: LayerNorm, learned positions, dropout, eager softmax in the layer's dtype (``modeling_biogpt.py``)."""

from __future__ import annotations

from collections.abc import Callable

from lintfit.memory.activations.bert import attention
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    names, rate = ("q_proj", "k_proj", "v_proj"), t.rate("attention_probs_dropout_prob")
    return normed_before(t, x, lambda y: attention(t, y, names, rate, "out_proj"), t.rate("hidden_dropout_prob"))


def normed_before(t: Layer, x: Var, attends: Callable[[Var], Var], rate: float) -> Var:
    """A layer as fairseq writes it: a LayerNorm in front of both blocks, an MLP without a gate, dropout at ``rate``."""
    h, i = t.facts.hidden, t.facts.intermediate
    y = t.layernorm(x)
    t.held = (x, y)
    branch = attends(y)
    t.held = (x,)
    x = t.add(x, t.dropped(branch, rate))
    t.held = (x,)
    y = t.layernorm(x)
    t.held = (x, y)
    y = t.linear("fc1", y, h, i, bias=True)
    t.held = (x, y)
    y = t.activation(y, t.facts.activation)
    t.held = (x, y)
    y = t.dropped(y, t.rate("activation_dropout"))
    branch = t.linear("fc2", y, i, h, bias=True)
    t.held = (x,)
    return t.add(x, t.dropped(branch, rate))
