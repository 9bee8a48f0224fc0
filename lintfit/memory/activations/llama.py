"""The Llama family: RMSNorm, rotary attention, gated MLP (transformers ``modeling_llama.py`` and its copies).

Also Mistral, Qwen2, Qwen3 and Hunyuan (norms on q and k), Granite (scaled residuals), Arcee (an MLP without a gate),
and what has the same shape.
"""

from __future__ import annotations

from collections.abc import Callable

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var, function, once, positions
from lintfit.memory.activations.xielu import xielu

HEAD_NORMS = frozenset({"apertus", "dots1", "mellum", "qwen3", "qwen3_moe", "qwen3_vl_text", "olmo2"})
NORMED_TOGETHER = frozenset({"apertus", "exaone_moe", "hy_v3"})
"""Model types that normalise the heads of queries and keys once values are there, too."""
NORMS_WHAT_IS_TURNED = frozenset({"hunyuan_v1_dense", "hunyuan_v1_moe"})
"""Model types that normalise the heads of queries and keys behind the rotary, not in front of it."""
WIDE_NORMS = frozenset({"minimax_m2", "olmoe"})
"""Model types that normalise queries and keys of all heads together."""
PARTLY_TURNED = frozenset({"glm4_moe", "glm4v_moe_text", "minimax_m2"})
"""Model types whose rotary turns a part of each head, which a ``torch.cat`` joins with the rest."""
TURNED_IN_FULL = frozenset({"ernie4_5", "ernie4_5_moe"})
"""Model types whose rotary runs in fp32, by tables that every layer spreads over pairs anew."""
TURNED_IN_WINDOWS = frozenset({"cohere2", "exaone4", "exaone_moe"})
"""Model types whose layers that attend to everything leave queries and keys as they are, where others have a window."""
OFF_BY_DEFAULT = frozenset({"dots1", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe"})
"""Model types whose config class leaves ``use_sliding_window`` off."""
FULL_FIRST = {"dots1": 62, "qwen2": 28, "qwen3": 28}
"""Model types whose first ``max_window_layers`` layers attend in full, and how many these are by default."""
SCALED_RESIDUALS = frozenset({"granite", "granitemoe", "minicpm", "minicpm3"})


def heads(facts: ModelFacts, index: int = 0) -> Heads:
    """The layer's heads and window. ``layer_types`` decides where a config has it, else ``use_sliding_window``."""
    window = facts.sliding_window
    config = facts.config
    types = config.get("layer_types")
    if isinstance(types, list) and index < len(types):
        window = window if types[index] == "sliding_attention" else None
    elif not config.get("use_sliding_window", facts.model_type not in OFF_BY_DEFAULT) or index < _full_first(facts):
        window = None
    return Heads(facts.heads, facts.kv_heads, facts.head_dim, window)


def _full_first(facts: ModelFacts) -> int:
    default = FULL_FIRST.get(facts.model_type)
    return 0 if default is None else int(facts.config.get("max_window_layers") or default)


def clipped(t: Layer, *parts: Var) -> tuple[Var, ...]:
    """Queries, keys and values clamped in place where the config says so; autograd saves copies of what they were."""
    if not t.facts.config.get("clip_qkv"):
        return parts
    return tuple([t.op(Var(x.width, x.item, x.per, x.storage, x.grad), (x,), _copy(t, x)) for x in parts])


def _copy(t: Layer, x: Var) -> tuple[Var, ...]:
    return (t.like(x, x.width, x.item, False),) if x.grad else ()


Norm = Callable[[Layer, Var, int], Var]
"""A norm over all heads, so many elements a token."""


def projected(t: Layer, x: Var, shape: Heads, *, bias: bool = False, norm: Norm | None = None) -> tuple[Var, Var, Var]:
    """Queries, keys and values, from a linear layer each. ``norm``: of queries and keys as soon as they are there."""
    h, wide, narrow = t.facts.hidden, shape.queries * shape.dim, shape.keys * shape.dim
    q = t.linear("q_proj", x, h, wide, bias=bias)
    q = norm(t, q, wide) if norm is not None else q
    k = t.linear("k_proj", x, h, narrow, bias=bias)
    k = norm(t, k, narrow) if norm is not None else k
    v = t.linear("v_proj", x, h, narrow, bias=bias)
    return q, k, v


def _norm_of(facts: ModelFacts) -> Norm | None:
    """The norm that queries and keys have at once."""
    if facts.model_type in WIDE_NORMS:
        return lambda t, x, width: t.rmsnorm(x, width)
    if facts.model_type in HEAD_NORMS and facts.model_type != "apertus":
        return lambda t, x, width: t.rmsnorm(x, facts.head_dim)
    return None


def turns(facts: ModelFacts, shape: Heads) -> bool:
    """Whether a layer has rotary positions (:data:`TURNED_IN_WINDOWS`)."""
    everywhere = facts.model_type not in TURNED_IN_WINDOWS or not facts.config.get("sliding_window")
    return everywhere or shape.window is not None


@function
def attention(t: Layer, x: Var, index: int) -> Var:
    """Self-attention of one layer, from the normalised input to the output projection."""
    facts = t.facts
    shape = heads(facts, index)
    q, k, v = projected(t, x, shape, norm=_norm_of(facts))
    if facts.model_type == "olmoe":
        q, k, v = clipped(t, q, k, v)
    if facts.model_type in NORMED_TOGETHER or (facts.model_type == "glm4_moe" and facts.qk_norm):
        q, k = t.rmsnorm(q, shape.dim), t.rmsnorm(k, shape.dim)
    partial = facts.model_type in PARTLY_TURNED
    share = facts.rotary_dim / shape.dim if partial and facts.rotary_dim else 1.0
    if facts.model_type in NORMS_WHAT_IS_TURNED:  # by tables of the stream's dtype, which the norms keep
        q, k = (t.rmsnorm(t.rotary(t.cast(part, x.item)), shape.dim) for part in (q, k))
    elif facts.model_type in TURNED_IN_FULL:
        tables = t.new(shape.dim, 4, False, per=positions), t.new(shape.dim, 4, False, per=positions)
        q, k = _turned_in_full(t, q, k, tables)
    elif turns(facts, shape):
        q, k = t.both_turned(q, k, share, concatenated=partial)
    return t.dropped(attended(t, q, k, v, shape, head_major=partial), t.rate("residual_dropout"))


@function
def _turned_in_full(t: Layer, q: Var, k: Var, tables: tuple[Var, ...]) -> tuple[Var, Var]:
    """ERNIE's rotary, in fp32 on copies."""
    t.name(q, k, *tables)
    turned = [t.rotary(t.cast(part, 4), tables=tables) for part in (q, k)]
    return t.cast(turned[0], q.item), t.cast(turned[1], k.item)


def attended(
    t: Layer, q: Var, k: Var, v: Var, shape: Heads, *, head_major: bool = False, out: str = "o_proj", bias: bool = False
) -> Var:
    """Attention with the config's dropout, and its output projection ``out``."""
    result = attend(t, q, k, v, shape, head_major=head_major)
    return t.linear(out, result, shape.queries * shape.dim, t.facts.hidden, bias=bias)


GATED = ("gate_proj", "up_proj", "down_proj")


def mlp(t: Layer, x: Var, width: int | None = None, names: tuple[str, str, str] = GATED) -> Var:
    """``down(act(gate(x)) * up(x))``, or ``down(act(up(x)))`` without a gate.

    Liger's fused SwiGLU recomputes the activation: it keeps gate and up only. ``names``: of gate, up and down.
    """
    h = t.facts.hidden
    i = width or t.facts.intermediate
    lora = t.recipe.lora
    if t.facts.gated and "lora_mlp" in t.recipe.kernels and lora is not None and all(map(lora.on, names)):
        return _fused_mlp(t, x, h, i)
    if not t.facts.gated:
        up = t.linear(names[1], x, h, i)
        active = xielu(t, up) if t.facts.activation == "xielu" else t.activation(up, t.facts.activation)
        return t.linear(names[2], active, i, h)
    gate = t.linear(names[0], x, h, i)
    if not t.recipe.liger:
        gate = t.activation(gate, t.facts.activation)
    held = t.held
    t.held = (*held, gate)
    up = t.linear(names[1], x, h, i)
    t.held = held
    if t.recipe.liger:
        product = t.op(t.like(gate, gate.width, gate.item, gate.grad or up.grad), (gate, up), (gate, up))
    else:
        product = t.mul(gate, up)
    return t.dropped(t.linear(names[2], product, i, h), t.rate("residual_dropout"))


def _fused_mlp(t: Layer, x: Var, h: int, i: int) -> Var:
    """The three products, their adapters and the activation as one function (Unsloth ``fast_lora.py:LoRA_MLP``).

    Saves its input, gate and up. The backward makes the gradient of the product, writes the product and the gradients
    of gate and up over it and them, and the input's gradient over the input.
    """
    lora = t.recipe.lora
    assert lora is not None
    gate, up = t.like(x, i, x.item, True), t.like(x, i, x.item, True)
    weight = ((2 * h * i, once),) if t.recipe.quantized else ()
    made = (lora.rank * (h + i) * lora.item,) * 3
    out = t.like(x, h, x.item, True)
    return t.op(out, (x,), (x, gate, up), temp=((i * x.item, x.per), *weight), weights=made, overwritten=(x,))


def residual(t: Layer, x: Var, branch: Var) -> Var:
    """``x + branch``, the branch scaled first where the family does so."""
    if t.facts.model_type in SCALED_RESIDUALS:
        branch = t.map(branch)
    return t.add(x, branch)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    y = t.rmsnorm(x)
    t.held = (x, y)
    x = residual(t, x, attention(t, y, index))
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    return residual(t, x, mlp(t, y))
