"""Llama 4: experts that each see every token, complex rotary, layers without positions (``modeling_llama4.py``).

Every token goes through every expert, scaled by its score, which is 0 for all but its own: what the experts keep grows
with their number, not with how many a token visits.
"""

from __future__ import annotations

from lintfit.catalog.architectures.llama4_text import routed_layers
from lintfit.catalog.config import Config
from lintfit.catalog.facts import ModelFacts, MoE
from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.llama import mlp, projected
from lintfit.memory.activations.tape import INDEX, Var, function, positions, saved_factors
from lintfit.memory.activations.traits import Traits


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer, which has a name of its own for what attention gives back."""
    y = t.rmsnorm(x)
    t.held = (x, y)
    mixed = _attention(t, y, index)
    x = t.add(x, mixed)
    t.held = (x, mixed)
    y = t.rmsnorm(x)
    t.held = (x, y, mixed)
    if not routes(t.facts, index):
        return t.add(x, mlp(t, y))
    assert t.facts.moe is not None
    return t.add(x, _experts(t, y, t.facts.moe))


def routes(facts: ModelFacts, index: int) -> bool:
    """Whether a layer has experts."""
    return index in routed_layers(Config(facts.config, {}, facts.name))


def turns(facts: ModelFacts, index: int) -> bool:
    """Whether a layer has rotary positions, and then attends in chunks; every fourth has neither."""
    stated = facts.config.get("no_rope_layers")
    if isinstance(stated, list) and index < len(stated):
        return bool(stated[index])
    return (index + 1) % int(facts.config.get("no_rope_layer_interval") or 4) != 0


def heads(facts: ModelFacts, index: int) -> Heads:
    """The heads of one layer, and as its window the tokens of a chunk where it attends in chunks."""
    window = facts.sliding_window if turns(facts, index) else None
    return Heads(facts.heads, facts.kv_heads, facts.head_dim, window)


TRAITS = Traits(heads=heads, routes=routes, casts_experts=True)


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    facts = t.facts
    shape = heads(facts, index)
    q, k, v = projected(t, x, shape)
    if turns(facts, index):
        q, k = (t.cast(t.map(t.cast(part, 4)), part.item) for part in (q, k))
        if facts.config["use_qk_norm"]:
            q, k = (t.cast(t.root_mean_square(t.cast(part, 4), shape.dim), part.item) for part in (q, k))
    elif facts.config["attn_temperature_tuning"]:
        q = t.cast(_tempered(t, q), q.item)
    out = attend(t, q, k, v, shape, half_softmax=True)
    return t.linear("o_proj", out, shape.queries * shape.dim, facts.hidden)


def _tempered(t: Layer, q: Var) -> Var:
    """Queries by an fp32 factor for each position."""
    scales = t.new(1, 4, False, per=positions)
    out = t.like(q, q.width, 4, q.grad)
    return t.op(out, (q,), (scales,), temp=(t.uncast(q, 4),) if q.item < 4 else ())


def _experts(t: Layer, x: Var, moe: MoE) -> Var:
    """Scores, all experts over all tokens (``torch.bmm``), and the shared expert, into whose result they are summed."""
    h, i, count, k = t.facts.hidden, moe.intermediate, moe.experts, moe.top_k
    logits = t.linear("router", x, h, count)
    best = t.op(t.new(k, logits.item, logits.grad), (logits,), (t.new(k, INDEX, False),))
    scattered = t.op(t.new(count, logits.item, best.grad), (best,))
    scores = t.cast(t.sigmoid(t.cast(scattered, 4)), logits.item)
    before = t.held
    repeated = t.op(t.like(x, count * h, x.item, x.grad), (x,))
    scores = t.map(scores)
    routed = t.like(x, count * h, max(x.item, scores.item), x.grad or scores.grad)
    temp = [routed.scratch(routed.item)] if scores.grad else []
    t.op(routed, (repeated, scores), saved_factors(repeated, scores), temp=temp)
    t.held = (*before, scores, routed)
    trains = not t.recipe.frozen
    item = t.recipe.weights
    both = t.matmul(routed, h, 2 * i, item=item, trains=trains, copies=count)
    t.held = (*t.held, both)
    gate, up = t.split(both, (count * i, count * i))
    product = t.mul(up, t.activation(gate, t.facts.activation))
    out = t.matmul(product, i, h, item=item, trains=trains, copies=count)
    t.held = (*before, scores, routed, out)
    shared = mlp(t, x, moe.shared_intermediate)
    t.held = (*before, scores, routed, out, shared)
    whole = t.cast(out, 4) if t.recipe.autocast else out
    summed = t.op(t.new(h, whole.item, whole.grad), (whole,))
    t.held = before
    return t.add_(shared, summed)
