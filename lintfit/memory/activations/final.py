"""The norm behind the last layer, which is written as the layers' own are."""

from __future__ import annotations

from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var

LAYERNORMS = frozenset({"cohere", "cohere2", "nemotron", "olmo"})
"""Model types whose LayerNorm is not torch's."""

GEMMA = frozenset({"gemma", "gemma2", "gemma3", "gemma3_text"})
FULL = frozenset({"gpt_oss", "olmo2", "olmo3"})
"""Model types that multiply by the norm's weight before the cast back from fp32."""


def final_norm(t: Layer, x: Var) -> Var:
    """What the head takes, from the last layer's output."""
    kind = t.facts.model_type
    if kind in LAYERNORMS:
        from lintfit.memory.activations.layernorm import norm

        return norm(t, x)
    if kind in FULL:
        return t.full_norm(x)
    if t.facts.norm == "layernorm":
        return t.layernorm(x)
    return t.gemma_norm(x) if kind in GEMMA else t.rmsnorm(x)
