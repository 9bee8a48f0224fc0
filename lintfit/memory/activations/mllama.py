"""Llama 3.2 Vision's text layers: Llama's own, and between them layers that attend to the images instead.

Source: transformers ``modeling_mllama.py`` (``MllamaCrossAttentionDecoderLayer``, ``MllamaTextCrossAttention``).
"""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations import llama
from lintfit.memory.activations.attention import attend_beside
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var, function
from lintfit.memory.activations.traits import Traits


def crosses(facts: ModelFacts, index: int) -> str:
    """How a layer attends to the images: not at all (empty), ``cross``, or ``last cross`` for the last such layer.

    On the way back the last one makes the gradient of what they all attend to, and the others add to it.
    """
    stated = (facts.text_config or facts.config)["cross_attention_layers"]
    layers = [layer for layer in stated if layer < facts.layers]
    if index not in layers:
        return ""
    return "last cross" if index == max(layers) else "cross"


TRAITS = Traits(crosses=crosses)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    how = crosses(t.facts, index)
    if not how:
        return llama.layer(t, x, index)
    y = t.rmsnorm(x)
    t.held = (x, y)
    x = t.add(x, t.scaled(_attention(t, y, last=how == "last cross"), 1, t.recipe.trains("cross_attn_attn_gate")))
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    y = llama.mlp(t, y)
    # A row of zeros stands in for what tokens that attend to no image get: ``full_text_row_masked_out_mask``.
    item = max(y.item, t.recipe.weights)
    y = t.map(y, item=item, temp=(t.uncast(y, item),) if y.item < item else ())
    return t.add(x, t.scaled(y, 1, t.recipe.trains("cross_attn_mlp_gate")))


@function
def _attention(t: Layer, y: Var, *, last: bool) -> Var:
    """Queries of the text, keys and values of the images, both but the values normed head by head."""
    facts, beside = t.facts, t.recipe.beside
    assert beside is not None
    heads = llama.heads(facts)
    h, wide, narrow = facts.hidden, heads.queries * heads.dim, heads.keys * heads.dim
    seen = t.new(h, beside.item, beside.flows, per=beside.positions)
    seen.storage.external = True
    q = t.rmsnorm(t.linear("q_proj", y, h, wide), heads.dim, "q_norm")
    keys = t.linear("k_proj", seen if last else t.added(seen), h, narrow)
    v = t.linear("v_proj", seen if last else t.added(seen), h, narrow)
    k = t.rmsnorm(keys, heads.dim, "k_norm")
    return t.linear("o_proj", attend_beside(t, q, k, v, heads, beside), wide, h)
