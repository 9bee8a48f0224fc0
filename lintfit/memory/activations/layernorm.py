"""Decoders with LayerNorm and separate projections: StableLM, StarCoder 2, Phi, Nemotron, OLMo, Cohere, Jais 2.

Sources: ``modeling_stablelm.py``, ``modeling_starcoder2.py``, ``modeling_phi.py``, ``modeling_nemotron.py``,
``modeling_olmo.py``, ``modeling_cohere.py``, ``modeling_cohere2.py``, ``modeling_jais2.py``.
"""

from __future__ import annotations

from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.llama import attended, clipped, heads, mlp, projected, turns
from lintfit.memory.activations.tape import Var, function

COHERE = frozenset({"cohere", "cohere2"})
PARALLEL = frozenset({"phi", *COHERE})
"""Attention and MLP read the same normalised input, and both are added to the residual."""
PLAIN_MLP = {
    "starcoder2": ("c_fc", "c_proj"),
    "phi": ("fc1", "fc2"),
    "jais2": ("up_proj", "down_proj"),
    "nemotron": ("up_proj", "down_proj"),
}
PARTIAL = frozenset({"stablelm", "phi", "nemotron"})
"""Rotary turns a part of each head, and a ``torch.cat`` joins it with the rest."""
NAMES_PARTS = frozenset({"stablelm", "phi"})
"""Attention itself parts the heads and joins them, and has names for the parts to its end."""


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    facts = t.facts
    rate = t.rate("resid_pdrop", "residual_dropout")
    behind = t.rate("hidden_dropout") if facts.model_type == "stablelm" else rate
    y = norm(t, x)
    t.held = (x, y)
    branch = t.dropped(_attention(t, y, index), rate)
    if facts.model_type in PARALLEL or facts.parallel_residual:
        t.held = (x, y, branch)
        other = t.dropped(_mlp(t, y), behind)
        t.held = (x, y, branch, other)
        return t.add(t.add(branch, other), x) if facts.model_type == "phi" else t.add(t.add(x, branch), other)
    named = (x, y, branch) if facts.model_type == "stablelm" else ()
    x = t.add(x, branch)
    t.held = (*named, x)
    y = norm(t, x)
    t.held = (*named, x, y)
    return t.add(x, t.dropped(_mlp(t, y), behind))


def norm(t: Layer, x: Var, width: int | None = None) -> Var:
    match t.facts.model_type:
        case "olmo":
            return _without_weight(t, x)
        case "cohere" | "cohere2":
            return cohere_norm(t, x, width)
        case "cohere2_moe":
            return t.rmsnorm(x, width) if t.facts.norm == "rmsnorm" else cohere_norm(t, x, width)
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


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    facts = t.facts
    kind = facts.model_type
    shape = heads(facts, index)
    bias = bool(facts.config.get("attention_bias"))
    q, k, v = projected(t, x, shape, bias=bias)
    if facts.qk_norm:
        q, k = norm(t, q, shape.dim), norm(t, k, shape.dim)
    partial = kind in PARTIAL
    share = facts.rotary_dim / shape.dim if partial and facts.rotary_dim else 1.0
    if kind in COHERE:
        q, k = turned_on_copies(t, q, k) if turns(facts, shape) else (q, k)
    elif kind in NAMES_PARTS:
        turned = t.turned(q, share), t.turned(k, share)
        t.name(q, k, *turned)
        q, k = t.joined(q, turned[0]), t.joined(k, turned[1])
    elif kind == "olmo":
        q, k, v = clipped(t, q, k, v)
        q, k = turned_by_full_tables(t, q, k)
    else:
        q, k = t.both_turned(q, k, share, concatenated=partial)
    return attended(t, q, k, v, shape, head_major=partial, out="dense" if kind == "phi" else "o_proj", bias=bias)


@function
def turned_on_copies(t: Layer, q: Var, k: Var) -> tuple[Var, Var]:
    """The rotary in fp32 on copies of both, as Cohere and the encoders of Qwen's kind have it."""
    full = t.cast(q, 4), t.cast(k, 4)
    t.name(q, k, *full)
    turned = [t.rotary(part) for part in full]
    return t.cast(turned[0], q.item), t.cast(turned[1], k.item)


@function
def turned_by_full_tables(t: Layer, q: Var, k: Var) -> tuple[Var, Var]:
    """OLMo's rotary, whose fp32 tables make its products fp32."""
    t.name(q, k)
    turned = t.turned(q, item=4), t.turned(k, item=4)
    return t.cast(turned[0], q.item), t.cast(turned[1], k.item)


def _mlp(t: Layer, x: Var) -> Var:
    facts = t.facts
    names = PLAIN_MLP.get(facts.model_type)
    if names is None:
        return mlp(t, x)
    bias = bool(facts.config.get("mlp_bias"))
    up = t.linear(names[0], x, facts.hidden, facts.intermediate, bias=bias)
    return t.linear(names[1], t.activation(up, facts.activation), facts.intermediate, facts.hidden, bias=bias)
