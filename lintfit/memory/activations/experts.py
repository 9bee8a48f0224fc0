"""Routers and routed experts: one grouped product since transformers 5, a loop before (``integrations/moe.py``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from lintfit.catalog.facts import MoE
from lintfit.frozen import frozen, replace
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import CAST, INDEX, Var, saved_factors
from lintfit.memory.tensors.fused_experts import LINEAR_ROUTERS
from lintfit.memory.versions import GROUPED_EXPERTS


class Router(NamedTuple):
    """How a family scores its experts.

    ``full``: the product runs in fp32, on a copy of its input (``hidden_states.type(torch.float32)``). ``first``: the
    best logits are taken before the softmax, not after. ``upcast``: the scores are fp32. ``kept``: so are the weights
    that are made of them; else they have the logits' dtype. ``divided``: they are divided by their sum, which autocast
    takes in fp32, into a new tensor. ``apart``: autocast is off for the router, whose weight is fp32 in any model.
    ``soft``: the scores are a softmax in the logits' dtype, which autocast runs in fp32.
    """

    full: bool = False
    first: bool = False
    upcast: bool = True
    kept: bool = False
    apart: bool = False
    divided: bool = False
    soft: bool = False


SIGMOID = Router(full=True, upcast=False, kept=True)
"""DeepSeek V3's way: the scores, and the weights, have the dtype of the product, which autocast makes half."""

ROUTERS = {
    "mixtral": Router(kept=True),
    "deepseek_v2": Router(full=True, kept=True),
    "axk1": SIGMOID,
    "deepseek_v3": SIGMOID,
    "deepseek_v32": SIGMOID,
    "glm_moe_dsa": SIGMOID,
    "dots1": SIGMOID,
    "ernie4_5_moe": Router(full=True, apart=True),
    "lfm2_moe": Router(upcast=False, kept=True, divided=True),
    "hunyuan_v1_moe": Router(full=True, kept=True),
    "kimi_k2": SIGMOID,
    "kimi_linear": SIGMOID,
    "glm4_moe": SIGMOID,
    "glm4_moe_lite": SIGMOID,
    "glm4v_moe_text": SIGMOID,
    "mimo_v2_flash": SIGMOID,
    "minimax": Router(kept=True),
    "minimax_m2": Router(kept=True),
    "minimax_m3_vl_text": Router(kept=True),
    "mistral4": Router(upcast=False, kept=True, soft=True),
    "granitemoe": Router(first=True),
    "granitemoe_swa": Router(first=True),
    "granitemoehybrid": Router(first=True),
    "granitemoeshared": Router(first=True),
    "solar_open": SIGMOID,
    "exaone_moe": SIGMOID,
    "cohere2_moe": Router(first=True, upcast=False),
    "hy_v3": Router(full=True, upcast=False, kept=True, divided=True),
    "afmoe": Router(kept=True),
    "nemotron_h": SIGMOID,
    "gpt_oss": Router(first=True, upcast=False),
}
"""By model type; Qwen's and OLMoE's way where nothing is said (``*TopKRouter``)."""

UNNORMED = frozenset({"dots1", "flex_olmo", "olmoe", "qwen2_moe", "qwen3_moe"})
"""Model types whose config class leaves ``norm_topk_prob`` off."""

LOOPED = 16
"""Experts beyond which several are counted as one."""

COUNTED = 4
"""Bytes of an index as it is counted (``histc_input``)."""

Gate = Callable[[Layer, Var, int], Var]
"""From gate and up together, so many elements wide each, to what goes into the projection down."""


@frozen
class Routed:
    """The tokens of one of ``parts`` experts where each token goes to ``top_k``, spread evenly."""

    top_k: int
    parts: int

    def __call__(self, batch: int, seq: int) -> int:
        return -(-batch * seq * self.top_k // self.parts)


def _own(t: Layer, moe: MoE) -> int:
    """Experts whose weights this rank has."""
    return -(-moe.experts // t.recipe.expert_parallel)


def experts(
    t: Layer, x: Var, moe: MoE, *, gate: Gate | None = None, biased: bool = False, weights: Var | None = None,
    gated: bool = True,
) -> Var:  # fmt: skip
    """Router and routed experts over ``top_k`` copies of every token.

    Every token is gathered once for each of its experts. Totals do not depend on the routing: the grouped product has
    static shapes. ``gate``: what lies between the two products, SwiGLU by halves by default. ``biased``: each product
    adds a bias, which is gathered for every token first. ``weights``: of every token's experts, where the family has a
    router of its own. ``gated``: whether there is a gate; else the activation alone lies between the products.
    """
    h, i, k = x.width, moe.intermediate, moe.top_k
    held, lasting = t.held, t.lasting
    weights = weights or route(t, x, moe)
    if t.recipe.transformers < GROUPED_EXPERTS:
        t.held = held
        return _one_by_one(t, x, weights, moe, gated=gated)
    t.held = (*t.held, weights)
    weights = t.op(t.new(k, weights.item, weights.grad), (weights,), (t.new(k, INDEX, False),))
    gathered = t.op(t.new(k * h, x.item, x.grad), (x,), (t.new(k, INDEX, False),), temp=(x.scratch(x.item),))
    chosen = t.new(k, INDEX, False)
    # Local variables of the experts' function, which lives to its end.
    local = t.held = (*t.held, gathered, chosen, t.new(k, COUNTED, False))
    name, wide, between = ("gate_up_proj", 2 * i, _halves) if gated else ("up_proj", i, _activated)
    both = _product(t, name, gathered, _own(t, moe), h, wide, chosen if biased else None)
    inner = (gate or between)(t, both, k * i)
    t.held = local
    out = _product(t, "down_proj", inner, _own(t, moe), i, h, chosen if biased else None)
    t.held = (*t.held, out)
    item = max(out.item, weights.item)
    weighted = t.new(out.width, item, out.grad or weights.grad)
    # The weights' gradient is summed up from a whole product; the other is cast when both are made.
    temp = [t.uncast(out, item)] if out.item < item else []
    if weights.grad:
        temp.append(out.scratch(item))
    t.op(weighted, (out, weights), [var for var, by in ((out, weights), (weights, out)) if by.grad], temp=temp)
    ordered = t.map(weighted, (t.new(k, INDEX, False),))
    t.held = (*t.held, ordered)
    if t.recipe.autocast:
        t.held = (*t.held, ordered)  # the sum's argument, of which autocast makes a copy
        ordered = t.cast(ordered, 4)
    total = t.cast(t.op(t.new(h, ordered.item, ordered.grad), (ordered,)), x.item)
    t.held, t.lasting = held, lasting
    return total


def route(t: Layer, x: Var, moe: MoE) -> Var:
    """The weights of every token's experts. The block that asks has a name for the router's logits as well."""
    if t.facts.model_type == "phimoe":
        return _sparsemixer(t, t.linear("router", x, t.facts.hidden, moe.experts))
    how = ROUTERS.get(t.facts.model_type, Router())
    k, recipe = moe.top_k, t.recipe
    if how.apart:
        t.recipe = replace(recipe, autocast=False, weights=4)
    logits = _logits(t, t.cast(x, 4) if how.full else x, moe.experts, full=how.full)
    t.recipe = recipe
    full = how.upcast or (how.soft if recipe.autocast else how.full)
    scores = t.cast(logits, 4) if full else logits
    cap = t.facts.config.get("moe_router_logit_softcapping")
    if isinstance(cap, int | float) and cap > 0:
        scores = t.map(t.tanh(t.map(scores)))
    t.held = (*t.held, scores if how.first else logits)
    if how.first:
        chosen = t.op(t.new(k, scores.item, scores.grad), (scores,), (t.new(k, INDEX, False),))
        weights = t.softmax(chosen)
    else:
        all_weights = t.softmax(scores)
        chosen = t.op(t.new(k, scores.item, all_weights.grad), (all_weights,), (t.new(k, INDEX, False),))
        weights = chosen
        if chosen.grad and _normalises(t):
            weights = t.mul(chosen, t.new(1, 4 if how.divided and recipe.autocast else scores.item, True))
    return weights if how.kept else t.cast(weights, x.item if how.apart else logits.item)


def _normalises(t: Layer) -> bool:
    """Whether the weights are divided by their sum."""
    kind = t.facts.model_type
    return kind != "deepseek_v2" and bool(t.facts.config.get("norm_topk_prob", kind not in UNNORMED))


def _sparsemixer(t: Layer, logits: Var) -> Var:
    """Phi-3.5 MoE's two experts, one after the other, each from a softmax of its own (``sparsemixer``).

    The best one's weight goes through a function of its own (``PhimoeMultiplier``); the other's softmax is over the
    scores without it.
    """
    parts, scores = [], logits
    for _ in range(2):
        masked = t.map(scores, (t.like(scores, scores.width, 1, False),))
        masked = t.cast(masked, 4) if t.recipe.autocast else masked
        gates = t.softmax(masked)
        index = t.new(1, INDEX, False)
        weight = t.new(1, gates.item, False)
        part = t.op(t.new(1, gates.item, gates.grad), (gates,), (index, weight), temp=(gates.scratch(gates.item),))
        parts.append(part)
        scores = t.map(logits)
    return t.op(t.new(2, parts[0].item, parts[0].grad), parts)


def _full_product(t: Layer, name: str, x: Var, rows: int, columns: int) -> Var:
    """A product with an fp32 copy of a half-precision weight, of which autocast makes a half-precision one again."""
    trains, size = t.recipe.trains(name), rows * columns
    weight = t.constant(size, 4, trains, CAST)
    t.op(weight, (), weights=(size * 2,) if trains else ())
    if t.recipe.autocast:
        x, weight = t.cast(x, 2), t.op(t.constant(size, 2, trains, CAST), (weight,))
    out = t.like(x, x.width // rows * columns, x.item, x.grad or trains)
    return t.op(out, (x, weight), saved_factors(x, weight))


def _logits(t: Layer, x: Var, count: int, *, full: bool) -> Var:
    """The router's product, with PEFT's adapter where its weight has one."""
    lora = t.recipe.lora
    name = "router" if t.facts.model_type in LINEAR_ROUTERS else "gate"
    if lora is None or lora.fused is None or lora.on(name) or not lora.fused.router:
        if full and t.recipe.weights == 2 and (lora is None or not lora.on(name)):
            return _full_product(t, name, x, t.facts.hidden, count)
        return t.linear(name, x, t.facts.hidden, count)
    if t.recipe.autocast:
        x = t.cast(x, 2)
    return _with_delta(t, x, 1, t.facts.hidden, count, 1)


def _halves(t: Layer, both: Var, width: int) -> Var:
    gate, up = t.split(both, (width, width))
    return t.mul(t.activation(gate, t.facts.activation), up)


def _activated(t: Layer, up: Var, width: int) -> Var:
    return t.activation(up, t.facts.activation)


def _product(t: Layer, module: str, x: Var, count: int, rows: int, columns: int, chosen: Var | None) -> Var:
    """A grouped product; ``chosen``: each row's expert, where a bias of that expert is added in place."""
    if chosen is None:
        return grouped(t, module, x, count, rows, columns)
    recipe = t.recipe
    trains = not recipe.frozen
    bias = t.new(x.width // rows * columns, recipe.weights, trains)
    made = (count * columns * recipe.weights,) if trains else ()
    t.op(bias, (), (chosen,) if trains else (), weights=made)
    t.held = (*t.held, bias)
    out = grouped(t, module, x, count, rows, columns)
    return t.add_(out, bias) if trains and out.grad else out


def _one_by_one(t: Layer, x: Var, weights: Var, moe: MoE, *, gated: bool) -> Var:
    """The loop over experts of transformers 4: each takes its tokens, and its gradients go before the next one's.

    Tokens are taken as spread evenly; with many experts several are counted as one, which moves transients only.
    """
    h, i = x.width, moe.intermediate
    parts = min(_own(t, moe), LOOPED)
    rows = Routed(moe.top_k, parts)
    each = -(-_own(t, moe) // parts)
    total = t.new(h, x.item, False)
    for _ in range(parts):
        index = t.new(1, INDEX, False, per=rows)
        taken = t.op(t.new(h, x.item, x.grad, per=rows), (x,), (index,), temp=(x.scratch(x.item),))
        if gated:
            gate = _expert(t, "w1", taken, each, h, i)
            up = _expert(t, "w3", taken, each, h, i)
            product = t.mul(t.activation(gate, t.facts.activation), up)
        else:
            product = t.activation(_expert(t, "up_proj", taken, each, h, i), t.facts.activation)
        out = _expert(t, "w2" if gated else "down_proj", product, each, i, h)
        share = t.op(t.new(1, x.item, weights.grad, per=rows), (weights,), (index,))
        weighted = t.new(h, x.item, out.grad or share.grad, per=rows)
        t.op(weighted, (out, share), (out, share), temp=(weighted.scratch(x.item),))
        total = t.add(total, t.op(t.new(h, x.item, weighted.grad), (weighted,), (index,)))
    return total


def _expert(t: Layer, module: str, x: Var, count: int, rows: int, columns: int) -> Var:
    """One expert's matrix; ``count`` experts counted as one have that many times its gradient."""
    if count == 1 or t.recipe.frozen:
        return t.linear(module, x, rows, columns)
    out = t.matmul(x, rows, columns, item=t.recipe.weights, trains=False)
    gradient = count * rows * columns * t.recipe.weights
    return t.op(t.like(out, out.width, out.item, True), (out,), (x,), weights=(gradient,))


def grouped(t: Layer, module: str, x: Var, count: int, rows: int, columns: int) -> Var:
    """All experts' matrices as one grouped product, in the weights' dtype: autocast does not know it."""
    recipe = t.recipe
    trains = not recipe.frozen
    item = recipe.quantized_experts or recipe.weights
    x = t.cast(x, item)
    weight = _dequantized(t, count * rows * columns) if recipe.quantized_experts else None
    fused = recipe.lora.fused if recipe.lora is not None else None
    hits = 0 if fused is None else fused.down if module == "down_proj" else fused.gate_up
    if hits:
        return _with_delta(t, x, count, rows, columns, hits)
    if weight is not None:
        out = t.like(x, x.width // rows * columns, item, x.grad)
        return t.op(out, (x, weight), (weight,) if x.grad else ())
    out = t.like(x, x.width // rows * columns, item, x.grad or trains)
    made = (count * rows * columns * item,) if trains else ()
    return t.op(out, (x,), (x,) if trains else (), weights=made, parameter=x.grad)


def _dequantized(t: Layer, size: int) -> Var:
    """A parameter of experts as its parametrization gives it out, for the whole forward pass of the experts
    (bitsandbytes ``parametrize.py``, ``_enable_parametrization_cache``): of 8 bits the product with the rows' scales
    stands beside that with 1/127. Nobody needs a gradient of it, and the backward reads it once more."""
    item = t.recipe.quantized_experts
    weight = t.constant(size, item, False, CAST)
    scaled = (t.constant(size, item, False, CAST),) if item == 4 else ()
    t.op(weight, scaled)
    t.unseen = max(t.unseen, sum(var.storage.bytes for var in (*t.lasting, weight, *scaled)))
    t.lasting = (*t.lasting, weight)
    return weight


def _with_delta(t: Layer, x: Var, count: int, rows: int, columns: int, hits: int) -> Var:
    """A product with a parameter that PEFT adapts: it forms ``W + BA`` first (peft ``ParamWrapper``).

    ``hits``: modules of old that have become one, for each of which it gets the rank once. The product with ``W`` keeps
    both factors: copies where they are cast, else views of the adapter's own weights (``get_delta_factors``). What it
    has formed is cached until the experts are done (``parametrize.cached``).
    """
    lora, item = t.recipe.lora, t.recipe.quantized_experts or t.recipe.weights
    assert lora is not None
    rank = lora.rank * count * hits
    size = (rows + columns) * rank
    factors = t.constant(size if lora.item != item else 0, item, True)
    t.op(factors, (), weights=(size * lora.item,))
    merged = t.constant(count * rows * columns, item, True, CAST)
    t.op(merged, (factors,), (factors,))
    if not t.graph:
        t.lasting = (*t.lasting, factors, merged)
    return t.op(t.like(x, x.width // rows * columns, item, True), (x, merged), saved_factors(x, merged))
