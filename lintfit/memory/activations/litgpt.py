"""LitGPT's block, the same for all its models but those with experts (``litgpt/model.py:Block``, ``litgpt/lora.py``).

Queries, keys and values come out of one projection, keys and values are copied for all heads where they are shared,
and a ``torch.cat`` joins what rotary turns with the rest. Rotary runs in fp32 (its tables do not follow the weights).
"""

from __future__ import annotations

from lintfit.frozen import replace
from lintfit.memory.activations.attention import Heads, _flash, eager
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.gemma import SANDWICH
from lintfit.memory.activations.tape import Var
from lintfit.memory.litgpt import Switches, switches


def layer(t: Layer, x: Var, index: int) -> Var:
    """One block, with parallel or sequential residual, one or two norms, and Gemma 2's norms behind the branches."""
    facts = t.facts
    on = _on(t)
    sandwich = facts.model_type in SANDWICH
    y = norm(t, x)
    t.held = (x, y)
    branch = _attention(t, y, on)
    branch = norm(t, branch) if sandwich else branch
    if facts.parallel_residual:
        z = y if _shares_norm(t) else norm(t, x)
        return t.add(t.add(_mlp(t, z, on), branch), x)
    x = t.add(branch, x)
    t.held = (x,)
    y = norm(t, x)
    t.held = (x, y)
    branch = _mlp(t, y, on)
    return t.add(norm(t, branch) if sandwich else branch, x)


def norm(t: Layer, x: Var) -> Var:
    """RMSNorm in fp32 with the weight applied in the model's dtype, or torch's LayerNorm."""
    return t.layernorm(x) if t.facts.norm == "layernorm" else t.rmsnorm(x)


def _on(t: Layer) -> Switches:
    lora = t.recipe.lora
    if lora is None:
        return Switches(False, False, False, False, False, False)
    return switches("all-linear" if lora.targets is None else lora.targets)


def _shares_norm(t: Layer) -> bool:
    """``shared_attention_norm``: Falcon-7B and Phi have one norm for both branches."""
    norms = [k for k in t.facts.tensors if k.role == "norm" and k.where == "layer" and k.name.endswith("weight")]
    return len(norms) == 1


def linear(t: Layer, x: Var, rows: int, columns: int, rank: int, parts: int = 1, width: int | None = None) -> Var:
    """``LoRALinear``: the pretrained product, and ``dropout(x) A^T B^T * scaling`` added to it.

    ``rank`` 0 for no adapter; ``parts``: how many of query, key and value share its A. ``width``: the columns that
    are adapted, where it is not all of them: ``zero_pad`` copies them into zeros, and ``index_copy_`` keeps its source.
    """
    recipe = t.recipe
    if recipe.quantized:
        out = t.quantized(x, rows, columns)
    else:
        out = t.matmul(x, rows, columns, item=recipe.weights, trains=not recipe.frozen)
    lora = recipe.lora
    if lora is None or not rank:
        return out
    held = t.held
    t.held = (*held, x, out)
    y = t.dropout(x) if lora.dropout else x
    y = t.matmul(y, rows, rank * parts, item=lora.item, trains=True)
    if parts > 1:
        # Each of query, key and value has a share of A's columns: as many products as one of the whole width.
        (y,) = t.split(y, (y.width // parts,))
    y = t.matmul(y, rank, width or columns, item=lora.item, trains=True)
    if width is not None and width != columns:
        y = t.op(t.like(out, out.width, y.item, True), (y,), (y,))
    y = t.map(y)
    t.held = held
    return t.add(out, y)


def _attention(t: Layer, x: Var, on: Switches) -> Var:
    facts = t.facts
    lora = t.recipe.lora
    h, dim = facts.hidden, facts.head_dim
    wide, narrow = facts.heads * dim, facts.kv_heads * dim
    parts = sum(on[:3])
    adapted = sum(width for width, taken in zip((wide, narrow, narrow), on[:3], strict=True) if taken)
    qkv = linear(t, x, h, wide + 2 * narrow, lora.rank if lora and parts else 0, max(1, parts), adapted)
    q, k, v = t.split(qkv, (wide, narrow, narrow))
    if facts.kv_heads != facts.heads:
        q = q if facts.kv_heads == 1 else t.map(q)
        k, v = (t.op(t.like(part, wide, part.item, part.grad), (part,)) for part in (k, v))
    if facts.qk_norm:
        q, k = t.rmsnorm(q, dim), t.rmsnorm(k, dim)
    q, k = (_rotary(t, part) for part in (q, k))
    shape = Heads(facts.heads, facts.heads, dim)
    if facts.attention_softcap:
        held, t.recipe = t.recipe, replace(t.recipe, autocast=False)
        out = eager(t, q, k, v, shape, softcap=True)
        t.recipe = held
    else:
        out = _flash(t, q, k, v, shape, head_major=True)
    return linear(t, out, wide, h, lora.rank if lora and on.projection else 0)


def _rotary(t: Layer, x: Var) -> Var:
    """``apply_rope`` in fp32 and the ``torch.cat`` behind it; keeps only the shared tables."""
    turned = t.map(x, item=4)
    cosine = t.map(x, item=4)
    return t.map(t.cast(t.add(turned, cosine), x.item))


def _mlp(t: Layer, x: Var, on: Switches) -> Var:
    facts = t.facts
    h, i = facts.hidden, facts.intermediate
    rank = t.recipe.lora.rank if t.recipe.lora is not None and on.mlp else 0
    if facts.gated:
        gate = linear(t, x, h, i, rank)
        up = linear(t, x, h, i, rank)
        y = t.mul(t.map(gate, (gate,)), up)
    else:
        y = linear(t, x, h, i, rank)
        y = t.map(y, (y,))
    return linear(t, y, i, h, rank)
