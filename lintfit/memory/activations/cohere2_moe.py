"""Command A+: attention and experts side by side over one norm's result (``modeling_cohere2_moe.py``)."""

from __future__ import annotations

from lintfit.memory.activations.attention import attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.experts import experts
from lintfit.memory.activations.layernorm import norm, turned_on_copies
from lintfit.memory.activations.llama import heads, mlp, projected
from lintfit.memory.activations.moe import has_experts
from lintfit.memory.activations.tape import Var, function


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    y = norm(t, x)
    t.held = (x, y)
    branch = _attention(t, y, index)
    t.held = (x, y, branch)
    other = _experts(t, y) if has_experts(t.facts, index) else mlp(t, y)
    t.held = (x, y, branch, other)
    return t.add(t.add(x, branch), other)


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    """Turned within windows, and in dense layers where these have none."""
    facts = t.facts
    shape = heads(facts, index)
    q, k, v = projected(t, x, shape)
    dense = not has_experts(facts, index) and facts.config.get("prefix_dense_sliding_window_pattern") == 1
    if shape.window is not None or dense:
        q, k = turned_on_copies(t, q, k)
    out = attend(t, q, k, v, shape)
    return t.linear("o_proj", out, shape.queries * shape.dim, facts.hidden)


@function
def _experts(t: Layer, x: Var) -> Var:
    """Routed experts, and the shared one's result added or averaged with theirs."""
    moe = t.facts.moe
    assert moe is not None
    out = experts(t, x, moe)
    if not moe.shared_intermediate:
        return out
    t.held = (*t.held, out)
    both = t.add(out, mlp(t, x, moe.shared_intermediate))
    return t.map(both) if t.facts.config.get("shared_expert_combination_strategy") == "average" else both
