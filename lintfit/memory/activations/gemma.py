"""Gemma 1 to 3: fp32 norms scaled by ``1 + weight``, gelu-tanh MLP, norms after the blocks, soft-capped scores."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.llama import mlp, projected
from lintfit.memory.activations.tape import Var, function
from lintfit.memory.activations.traits import Traits

ALTERNATE = frozenset({"gemma2", "vaultgemma"})
"""Model types that slide in every second layer where ``layer_types`` does not say, and cap their scores."""
SANDWICH = frozenset({"gemma2", "gemma3", "gemma3_text"})
HEAD_NORMS = frozenset({"gemma3", "gemma3_text"})


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer; Gemma 2 and 3 also norm what the attention and the MLP give back."""
    sandwich = t.facts.model_type in SANDWICH
    y = t.gemma_norm(x)
    t.held = (x, y)
    branch = _attention(t, y, index)
    x = t.add(x, t.gemma_norm(branch) if sandwich else branch)
    t.held = (x,)
    y = t.gemma_norm(x)
    t.held = (x, y)
    branch = mlp(t, y)
    return t.add(x, t.gemma_norm(branch) if sandwich else branch)


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    facts = t.facts
    shape = heads(facts, index)
    q, k, v = projected(t, x, shape)
    if facts.model_type in HEAD_NORMS:
        q, k = t.gemma_norm(q, facts.head_dim), t.gemma_norm(k, facts.head_dim)
    q, k = t.both_turned(q, k)
    out = attend(t, q, k, v, shape, softcap=_softcap(t))
    return t.linear("o_proj", out, facts.heads * facts.head_dim, facts.hidden)


def _softcap(t: Layer) -> bool:
    return t.facts.model_type in ALTERNATE and t.facts.config.get("attn_logit_softcapping", 50.0) is not None


def window(facts: ModelFacts, index: int) -> int | None:
    """Gemma 2 slides in every second layer from the first on, Gemma 3 in five of six (their config classes)."""
    types = facts.config.get("layer_types")
    if isinstance(types, list) and index < len(types):
        return facts.sliding_window if types[index] == "sliding_attention" else None
    if facts.model_type in ALTERNATE:
        return facts.sliding_window if index % 2 == 0 else None
    if facts.model_type in HEAD_NORMS:
        pattern = int(facts.config.get("sliding_window_pattern") or 6)
        return facts.sliding_window if (index + 1) % pattern else None
    return None


def heads(facts: ModelFacts, index: int) -> Heads:
    """The heads and the window of one layer."""
    return Heads(facts.heads, facts.kv_heads, facts.head_dim, window(facts, index))


TRAITS = Traits(heads=heads)
