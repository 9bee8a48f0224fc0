"""The norm behind the last layer, which is written as the layers' own are."""

from __future__ import annotations

from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.frames import embedding_width, ends_with_norm, frame
from lintfit.memory.activations.tape import Var


def final_norm(t: Layer, x: Var) -> Var:
    """What the head takes, from the last layer's output."""
    how = frame(t.facts)
    kind = how.norm
    if how.ends:
        return x
    if kind == "cohere":
        from lintfit.memory.activations.layernorm import norm

        return norm(t, x)
    if kind == "full":
        return t.full_norm(x)
    if kind == "nanochat":
        from lintfit.memory.activations.nanochat import norm as weightless

        return weightless(t, x)
    if kind == "helium":
        return t.full_norm(x, casts=True)
    if kind in ("gemma3n", "gemma4"):
        from lintfit.memory.activations.gemma3n import together
        from lintfit.memory.activations.gemma4 import norm as power_norm

        return power_norm(t, together(t, x) if kind == "gemma3n" else x)
    if kind == "t5":
        from lintfit.memory.activations.t5 import ending

        return ending(t, x)
    if kind == "opt":
        return _opt(t, x)
    if t.facts.norm == "layernorm":
        return t.layernorm(x)
    return t.gemma_norm(x) if kind == "gemma" else t.rmsnorm(x)


def _opt(t: Layer, x: Var) -> Var:
    """OPT's, but for the 350m, whose layers end with a norm and whose head is narrower than its layers."""
    if not ends_with_norm(t.facts):
        x = t.layernorm(x)
    width = embedding_width(t.facts)
    return x if width == t.facts.hidden else t.linear("project_out", x, t.facts.hidden, width)
