"""MiniMax M3: an indexer chooses blocks of keys, which attention takes as a mask of every head; clamped gates.

After ``modeling_minimax_m3_vl.py`` of transformers, whose eager and SDPA paths hand the choice on as an additive mask
[batch, heads, seq, seq]. The indexer has a graph that nothing needs when it is done.
"""

from __future__ import annotations

import sys

from lintfit.catalog.architectures.minimax_m3_vl_text import SPARSE
from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import frozen
from lintfit.memory.activations.attention import attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.experts import experts
from lintfit.memory.activations.llama import heads, projected
from lintfit.memory.activations.moe import has_experts
from lintfit.memory.activations.tape import INDEX, Var, function, pairs
from lintfit.memory.activations.traits import Traits


@frozen
class Filled:
    """Keys of every token, in whole blocks of ``size``."""

    size: int

    def __call__(self, batch: int, seq: int) -> int:
        return batch * seq * -(-seq // self.size) * self.size


@frozen
class Blocks:
    """Blocks of ``size`` keys for every token, ``most`` of them at most, and so many ``more``."""

    size: int
    most: int | None = None
    more: int = 0

    def __call__(self, batch: int, seq: int) -> int:
        count = -(-seq // self.size)
        return batch * seq * ((count if self.most is None else min(count, self.most)) + self.more)


def mixer(facts: ModelFacts, index: int) -> str:
    """What a layer does that others may not: choose blocks."""
    return SPARSE if facts.config["layer_types"][index] == SPARSE else ""


TRAITS = Traits(mixer=mixer)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    facts = t.facts
    y = t.gemma_norm(x)
    t.held = (x, y)
    x = t.add(x, _attention(t, y, index))
    t.held = (x,)
    y = t.gemma_norm(x)
    t.held = (x, y)
    if facts.moe is None or not has_experts(facts, index):
        return t.add(x, _mlp(t, y, facts.intermediate))
    shared = _mlp(t, y, facts.moe.shared_intermediate)
    t.held = (x, y, shared)
    out = t.map(experts(t, y, facts.moe, gate=_clamped))
    return t.add(x, t.add(out, shared))


@function
def _attention(t: Layer, x: Var, index: int) -> Var:
    facts = t.facts
    shape = heads(facts, index)
    q, k, v = projected(t, x, shape, norm=lambda t, x, width: t.gemma_norm(x, shape.dim))
    q, k = t.both_turned(q, k, facts.rotary_dim / shape.dim, concatenated=True)
    mask = None
    if mixer(facts, index):
        t.held = (*t.held, q, k, v)
        chosen = _chosen(t, x)
        t.held = (*t.held, chosen)
        mask = _mask(t, chosen, q.item)
        t.unseen = sys.maxsize  # of every pair: no sum of what is saved bounds the forward pass
        t.held = (*t.held, mask)
    out = attend(t, q, k, v, shape, head_major=True, mask=mask)
    return t.linear("o_proj", out, shape.queries * shape.dim, facts.hidden)


@function
def _chosen(t: Layer, x: Var) -> Var:
    """The indexer: every query's product with all keys, of which each block's largest decides."""
    graph, config = t.graph, t.facts.config
    count, width, size = (int(config[key]) for key in ("index_n_heads", "index_head_dim", "index_block_size"))
    t.graph = False
    q = t.gemma_norm(t.linear("q_proj", x, t.facts.hidden, count * width), width)
    t.held = (*t.held, q)
    k = t.gemma_norm(t.linear("k_proj", x, t.facts.hidden, width), width)
    t.held = (*t.held, k)
    q, k = t.both_turned(q, k, min(t.facts.rotary_dim, width) / width, concatenated=True)
    t.held = (*t.held, q, k)
    q, k = t.cast(q, 4), t.cast(k, 4)
    t.held = (*t.held, q, k)
    if t.recipe.autocast:
        q, k = t.cast(q, 2), t.cast(k, 2)
    if t.batched:  # batch and heads are merged, which copies what is the same for all heads
        k = t.op(t.like(k, k.width * count, k.item, False), (k,))
    scores = t.op(t.new(count, q.item, False, per=pairs), (q, k))
    later = t.new(1, 1, False, per=pairs)
    t.held = (*t.held, later)
    masked = t.op(t.new(count, scores.item, False, per=pairs), (scores, later))
    filled = t.op(t.new(count, masked.item, False, per=Filled(size)), (masked,))
    best = t.op(t.new(count, filled.item, False, per=Blocks(size)), (filled,))
    chosen = t.op(t.new(count, INDEX, False, per=Blocks(size, int(config["index_topk_blocks"]))), (best,))
    t.graph = graph
    return chosen


@function
def _mask(t: Layer, chosen: Var, item: int) -> Var:
    """``build_block_mask``: a boolean for every pair and head, put together with that of later tokens, then made an
    additive mask."""
    config, count = t.facts.config, t.facts.heads
    groups, size = int(config["index_n_heads"]), int(config["index_block_size"])
    t.held = (*t.held, chosen, t.new(chosen.width, INDEX, False, per=chosen.per))
    bias = t.new(groups, item, False, per=Blocks(size, more=1))
    t.held = (*t.held, bias)
    verdict = t.op(t.new(groups, 1, False, per=Blocks(size)), (bias,))
    spread = t.op(t.new(groups, 1, False, per=Filled(size)), (verdict,))
    kept = t.op(t.new(count, 1, False, per=pairs), (spread,))
    later = t.new(1, 1, False, per=pairs)
    t.held = (*t.held, kept, later)
    seen = t.op(t.new(count, 1, False, per=pairs), (kept, t.new(1, 1, False, per=pairs)))
    t.held = (*t.held, seen)
    zeros, others = t.new(count, item, False, per=pairs), t.new(count, 1, False, per=pairs)
    return t.op(t.new(count, item, False, per=pairs), (zeros, others))


@function
def _mlp(t: Layer, x: Var, width: int) -> Var:
    """The dense MLP, gate and up in one projection."""
    both = t.linear("gate_up_proj", x, t.facts.hidden, 2 * width)
    t.held = (*t.held, both)
    gate, up, glu = _glu(t, both, width)
    t.held = (*t.held, gate, up, glu)
    return t.linear("down_proj", t.mul(t.add(up), glu), width, t.facts.hidden)


@function
def _clamped(t: Layer, both: Var, width: int) -> Var:
    """What lies between the experts' products."""
    _, up, glu = _glu(t, both, width)
    return t.mul(t.add(up), glu)


def _glu(t: Layer, both: Var, width: int) -> tuple[Var, Var, Var]:
    """Gate and up, clamped, and ``gate * sigmoid(alpha * gate)``. A clamp keeps its input, here the whole product."""
    parts = t.split(both, (width, width))
    gate, up = (t.map(part, (part,), temp=(part.scratch(2),)) for part in parts)
    t.held = (*t.held, gate, up)
    return gate, up, t.mul(gate, t.sigmoid(t.map(gate)))
