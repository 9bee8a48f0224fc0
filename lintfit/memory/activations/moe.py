"""Mixture-of-experts layers: Llama's attention, a router, and grouped expert matrices (``integrations/moe.py``)."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts, MoE
from lintfit.frozen import frozen
from lintfit.memory.activations import llama, mla
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import CAST, Var

GROUPED_EXPERTS = (5, 0)
"""The first transformers version that runs all experts as one grouped product."""

FULL_ROUTERS = frozenset({"deepseek_v2", "deepseek_v3", "glm4_moe"})
"""Model types whose router multiplies in fp32, with a copy of its input (``hidden_states.type(torch.float32)``)."""

LOOPED = 16
"""Experts beyond which several are counted as one."""

INDEX = 8
"""Bytes of an int64 index."""


@frozen
class _Routed:
    """The tokens of one of ``parts`` experts where each token goes to ``top_k``, spread evenly."""

    top_k: int
    parts: int

    def __call__(self, batch: int, seq: int) -> int:
        return -(-batch * seq * self.top_k // self.parts)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer; layers without experts have the dense MLP."""
    facts = t.facts
    y = t.rmsnorm(x)
    t.held = (x, y)
    x = t.add(x, mla.attention(t, y) if "kv_lora_rank" in facts.config else llama.attention(t, y, index))
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    if facts.moe is None or not has_experts(facts, index):
        return t.add(x, llama.mlp(t, y))
    out = experts(t, y, facts.moe)
    if facts.moe.shared_intermediate:
        shared = llama.mlp(t, y, facts.moe.shared_intermediate)
        if facts.model_type == "qwen2_moe":
            gate = t.activation(t.linear("shared_expert_gate", y, facts.hidden, 1), "sigmoid")
            shared = t.mul(shared, gate)
        out = t.add(out, shared)
    return t.add(x, out)


def has_experts(facts: ModelFacts, index: int) -> bool:
    """Whether this layer routes: dense layers come first (DeepSeek), or every n-th one has experts (Qwen)."""
    config = facts.config
    dense = int(config.get("first_k_dense_replace") or 0)
    step = int(config.get("decoder_sparse_step") or config.get("moe_layer_freq") or 1)
    only = config.get("mlp_only_layers")
    if isinstance(only, list) and index in only:
        return False
    return index >= dense and (index + 1) % step == 0


def experts(t: Layer, x: Var, moe: MoE) -> Var:
    """Router and routed experts over ``top_k`` copies of every token.

    The router's softmax runs in fp32; every token is gathered once for each of its experts, and the experts'
    results are weighted in fp32. Totals do not depend on the routing: the grouped product has static shapes.
    """
    h, i = t.facts.hidden, moe.intermediate
    k = moe.top_k
    routed = t.cast(x, 4) if t.facts.model_type in FULL_ROUTERS else x
    scores = t.cast(t.linear("gate", routed, h, moe.experts), 4)
    weights = t.new(scores.width, 4, scores.grad)
    t.op(weights, (scores,), (weights,))
    chosen = t.op(t.new(k, 4, weights.grad), (weights,), (t.new(k, INDEX, False),))
    normed = t.mul(chosen, t.new(1, 4, True)) if chosen.grad else chosen
    ordered = t.op(t.new(k, 4, normed.grad), (normed,), (t.new(k, INDEX, False),))
    if t.recipe.transformers < GROUPED_EXPERTS:
        return _one_by_one(t, x, ordered, moe)
    gathered = t.op(t.new(k * h, x.item, x.grad), (x,), (t.new(k, INDEX, False),), temp=(x.scratch(x.item),))
    both = grouped(t, "gate_up_proj", gathered, moe.experts, h, 2 * i)
    gate, up = t.split(both, (k * i, k * i))
    product = t.mul(t.activation(gate, t.facts.activation), up)
    out = grouped(t, "down_proj", product, moe.experts, i, h)
    weighted = t.new(out.width, 4, out.grad or ordered.grad)
    t.op(weighted, (out, ordered), (out, ordered), temp=(out.scratch(4),))
    weighted = t.map(weighted, (t.new(k, INDEX, False),))
    total = t.op(t.new(h, 4, weighted.grad), (weighted,))
    return t.cast(total, x.item)


def _one_by_one(t: Layer, x: Var, weights: Var, moe: MoE) -> Var:
    """The loop over experts of transformers 4: each takes its tokens, and its gradients go before the next one's.

    Tokens are taken as spread evenly; with many experts several are counted as one, which moves transients only.
    """
    h, i = t.facts.hidden, moe.intermediate
    parts = min(moe.experts, LOOPED)
    rows = _Routed(moe.top_k, parts)
    each = -(-moe.experts // parts)
    total = t.new(h, x.item, False)
    for _ in range(parts):
        index = t.new(1, INDEX, False, per=rows)
        taken = t.op(t.new(h, x.item, x.grad, per=rows), (x,), (index,), temp=(x.scratch(x.item),))
        gate = _expert(t, "w1", taken, each, h, i)
        up = _expert(t, "w3", taken, each, h, i)
        product = t.mul(t.activation(gate, t.facts.activation), up)
        out = _expert(t, "w2", product, each, i, h)
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
    """All experts' matrices as one grouped product; with adapters PEFT forms ``W + BA`` for all experts first."""
    recipe = t.recipe
    lora = recipe.lora
    size = count * rows * columns
    trains = not recipe.frozen
    out = t.like(x, x.width // rows * columns, 2 if recipe.autocast else x.item, True)
    if lora is not None and lora.targets is None:
        # PEFT gives the fused gate and up, two modules of old, twice the rank.
        rank = lora.rank * count * (2 if module == "gate_up_proj" else 1)
        half = recipe.weights
        factors = t.constant((rows + columns) * rank, half, True)
        t.op(factors, (), weights=((rows + columns) * rank * lora.item,))
        merged = t.constant(size, half, True, CAST)
        t.op(merged, (factors,), (factors,))
        return t.op(out, (x, merged), (x, merged))
    if recipe.autocast:
        x = t.cast(x, 2)
    made = (size * recipe.weights,) if trains else ()
    return t.op(out, (x,) if x.grad else (), (x,) if trains else (), weights=made)
