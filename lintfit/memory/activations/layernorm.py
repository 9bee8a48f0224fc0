"""Decoders with LayerNorm and separate projections: StableLM, StarCoder 2, Phi, Nemotron, OLMo, Cohere.

Sources: ``modeling_stablelm.py``, ``modeling_starcoder2.py``, ``modeling_phi.py``, ``modeling_nemotron.py``,
``modeling_olmo.py``, ``modeling_cohere.py``, ``modeling_cohere2.py``.
"""

from __future__ import annotations

from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.llama import attended, heads, mlp, projected
from lintfit.memory.activations.tape import Var

COHERE = frozenset({"cohere", "cohere2"})
PARALLEL = frozenset({"phi", *COHERE})
"""Attention and MLP read the same normalised input, and both are added to the residual."""
PLAIN_MLP = {
    "starcoder2": ("c_fc", "c_proj"),
    "phi": ("fc1", "fc2"),
    "nemotron": ("up_proj", "down_proj"),
}
PARTIAL = frozenset({"stablelm", "phi", "nemotron"})
"""Rotary turns a part of each head, and a ``torch.cat`` joins it with the rest."""


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    facts = t.facts
    rate = float(facts.config.get("resid_pdrop") or facts.config.get("residual_dropout") or 0.0)
    y = norm(t, x)
    t.held = (x, y)
    branch = t.residual_dropout(_attention(t, y, index), rate)
    if facts.model_type in PARALLEL or facts.parallel_residual:
        t.held = (x, y, branch)
        return t.add(t.add(branch, t.residual_dropout(_mlp(t, y), rate)), x)
    x = t.add(x, branch)
    t.held = (x,)
    y = norm(t, x)
    t.held = (x, y)
    return t.add(x, t.residual_dropout(_mlp(t, y), rate))


def norm(t: Layer, x: Var, width: int | None = None) -> Var:
    match t.facts.model_type:
        case "olmo":
            return _without_weight(t, x)
        case "cohere" | "cohere2":
            return cohere_norm(t, x, width)
        case "nemotron":
            return t.layernorm(x, width, shifted=True)
        case _:
            return t.layernorm(x, width)


def _without_weight(t: Layer, x: Var) -> Var:
    """OLMo's LayerNorm: in fp32, without weight and bias."""
    full = t.cast(x, 4)
    rows = x.width // t.facts.hidden
    out = t.op(t.like(x, x.width, 4, x.grad), (full,), (full, t.like(x, rows, 4, False), t.like(x, rows, 4, False)))
    return t.cast(out, x.item)


def cohere_norm(t: Layer, x: Var, width: int | None = None) -> Var:
    """Cohere's LayerNorm, written out in fp32: both ``x - mean`` and the normalised x are kept."""
    width = width or t.facts.hidden
    trains = t.recipe.trains("norm")
    rows = x.width // width
    full = t.cast(x, 4)
    mean = t.op(t.like(x, rows, 4, full.grad), (full,))
    squared = t.op(t.like(x, x.width, 4, full.grad), (full, mean))
    squares = t.op(t.like(x, x.width, 4, full.grad), (squared,), (squared,), temp=(x.scratch(2 * 4),))
    root = t.like(x, rows, 4, full.grad)
    t.op(root, (t.op(t.like(x, rows, 4, full.grad), (squares,)),), (root,))
    centred = t.op(t.like(x, x.width, 4, full.grad), (full, mean))
    normed = t.op(t.like(x, x.width, 4, full.grad), (centred, root), (centred, root), temp=(x.scratch(4),))
    weights = (width * t.recipe.weights,) if trains else ()
    out = t.op(t.like(x, x.width, 4, x.grad or trains), (normed,), (normed,) if trains else (), weights=weights)
    return t.cast(out, x.item)


def _attention(t: Layer, x: Var, index: int) -> Var:
    facts = t.facts
    kind = facts.model_type
    shape = heads(facts, index)
    q, k, v = projected(t, x, shape)
    if facts.qk_norm:
        q, k = norm(t, q, shape.dim), norm(t, k, shape.dim)
    partial = kind in PARTIAL
    share = facts.rotary_dim / shape.dim if partial and facts.rotary_dim else 1.0
    if kind in COHERE:
        q, k = (t.cast(t.rotary(t.cast(part, 4)), x.item) for part in (q, k))
    else:
        q, k = t.rotary(q, share, concatenated=partial), t.rotary(k, share, concatenated=partial)
    return attended(t, q, k, v, shape, head_major=partial, out="dense" if kind == "phi" else "o_proj")


def _mlp(t: Layer, x: Var) -> Var:
    facts = t.facts
    names = PLAIN_MLP.get(facts.model_type)
    if names is None:
        return mlp(t, x)
    up = t.linear(names[0], x, facts.hidden, facts.intermediate)
    return t.linear(names[1], t.activation(up, facts.activation), facts.intermediate, facts.hidden)
