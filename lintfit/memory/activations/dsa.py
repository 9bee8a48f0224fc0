"""DeepSeek's sparse attention: an indexer picks the tokens that each token attends to (DeepSeek V3.2, GLM 5).

transformers' eager and SDPA paths score all pairs for every head of the indexer, without a graph, and hand the choice
on as a mask [batch, 1, seq, seq] of the layer's own (``modeling_deepseek_v32.py``, ``modeling_glm_moe_dsa.py``).
"""

from __future__ import annotations

import sys

from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import frozen
from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.mla import latent
from lintfit.memory.activations.moe import feed_forward
from lintfit.memory.activations.tape import INDEX, Var, function, pairs
from lintfit.memory.activations.traits import Traits


@frozen
class Chosen:
    """Tokens that each token attends to: ``count`` at most."""

    count: int

    def __call__(self, batch: int, seq: int) -> int:
        return batch * seq * min(self.count, seq)


def indexes(facts: ModelFacts, index: int) -> bool:
    """Whether a layer has an indexer of its own; in GLM 5 it may take the choice of the last one that has."""
    kinds = facts.config.get("indexer_types")
    return not (isinstance(kinds, list) and index < len(kinds) and kinds[index] == "shared")


def _hands_on(facts: ModelFacts) -> bool:
    """Whether a layer is given the choice of the one before, whether it takes it or not."""
    return facts.model_type == "glm_moe_dsa"


def mixer(facts: ModelFacts, index: int) -> str:
    """What a layer does that others may not: choose tokens, and be given a choice, by the one that made it or not."""
    chooses = "choosing" if indexes(facts, index) else "taking"
    if not (_hands_on(facts) and index):
        return chooses
    return f"{chooses}, given {'a choice' if indexes(facts, index - 1) else 'what was handed on'}"


TRAITS = Traits(mixer=mixer)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One decoder layer."""
    facts = t.facts
    given = None
    if _hands_on(facts) and index:
        given = _choice(t)
        if x.storage.external and t.graph:  # checkpointing keeps the argument, of which layers that hand it on have one
            given.storage.external = True
            if indexes(facts, index - 1):
                t.arguments.append(given.storage)
        t.lasting = (given,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    mixed, chosen = _attention(t, y, index, given)
    if _hands_on(facts):
        t.lasting = (*t.lasting, chosen)
        t.scores = chosen if t.graph else None
    x = t.add(x, mixed)
    t.held = (x,)
    y = t.rmsnorm(x)
    t.held = (x, y)
    return feed_forward(t, x, y, index)


def _choice(t: Layer) -> Var:
    """The chosen tokens' int32 indices."""
    return t.new(1, 4, False, per=Chosen(int(t.facts.config["index_topk"])))


@function
def _attention(t: Layer, x: Var, index: int, given: Var | None) -> tuple[Var, Var]:
    """Self-attention of one layer, from the normalised input to the output projection, and the choice it went by."""
    found = latent(t, x)
    assert found.small is not None
    q, k, v = found.q, found.k, found.v
    t.held = (*t.held, found.small, *found.named, q, k, v)  # no node saves these before the indexer runs
    if indexes(t.facts, index):
        graph, t.graph = t.graph, False
        chosen = _indexed(t, x, found.small)
        t.graph = graph
        t.unseen = sys.maxsize  # of every pair: no sum of what is saved bounds the forward pass
    else:
        assert given is not None
        chosen = given
    t.held = (*t.held, chosen)
    ones = t.op(t.new(1, 1, False, per=pairs), ())
    wide = t.op(t.new(1, INDEX, False, per=Chosen(int(t.facts.config["index_topk"]))), (ones, chosen))
    left_out = t.op(t.new(1, 1, False, per=pairs), (ones, wide))
    t.held = (*t.held, left_out)
    if t.recipe.attention == "eager":
        mask = t.op(t.new(1, t.recipe.opening, False, per=pairs), (left_out,))
    else:
        mask = t.op(t.new(1, 1, False, per=pairs), (t.op(t.new(1, 1, False, per=pairs), (left_out,)),))
    t.held = (*t.held, mask)
    heads, value = t.facts.heads, int(t.facts.config["v_head_dim"])
    shape = Heads(heads, heads, q.width // heads, None, value)
    out = attend(t, q, k, v, shape, head_major=True)
    return t.linear("o_proj", out, heads * value, t.facts.hidden), chosen


@function
def _indexed(t: Layer, x: Var, small: Var) -> Var:
    """The indexer, which runs without a graph: scores of all pairs and heads, weighed and summed up over the heads."""
    facts, config = t.facts, t.facts.config
    heads, width, rope = (int(config[key]) for key in ("index_n_heads", "index_head_dim", "qk_rope_head_dim"))
    q = t.linear("wq_b", small, int(config["q_lora_rank"]), heads * width)
    k = t.layernorm(t.linear("wk", x, facts.hidden, width), width)
    t.name(q, k)
    turned = t.both_turned(_part(q, rope / width), _part(k, rope / width))
    t.name(*turned)
    q, k = t.joined(q, turned[0]), t.joined(k, turned[1])
    t.name(q, k)
    scores = t.map(_product(t, q, k, heads, width))
    scores = t.relu(scores)
    t.name(scores)
    weights = t.map(t.cast(t.linear("weights_proj", t.cast(x, t.recipe.weights), facts.hidden, heads), 4))
    t.name(weights)
    weights = t.cast(weights, scores.item)
    sums = t.op(t.new(1, scores.item, False, per=pairs), (weights, scores))
    t.name(weights, sums)
    masked = t.new(
        1, max(sums.item, t.recipe.opening) if t.recipe.attention == "eager" else sums.item, False, per=pairs
    )
    t.op(masked, (sums,))
    t.name(masked)
    chosen = Chosen(int(config["index_topk"]))
    best = t.op(t.new(1, INDEX, False, per=chosen), (masked, t.new(1, masked.item, False, per=chosen)))
    return t.cast(best, 4)


def _part(x: Var, share: float) -> Var:
    """The part of each head that is turned."""
    return Var(int(x.width * share), x.item, x.per, x.storage, False)


@function
def _product(t: Layer, q: Var, k: Var, heads: int, width: int) -> Var:
    """Every query's product with all keys, in fp32. The keys are laid out anew for each query where there are several
    sequences: ``matmul`` merges these with the queries' positions."""
    q, k = t.cast(q, 4), t.cast(k, 4)
    t.name(q, k)
    if t.recipe.autocast:
        q, k = t.cast(q, 2), t.cast(k, 2)
        t.name(k)
    if t.batched:
        k = t.op(t.new(width, k.item, False, per=pairs), (k,))
    return t.op(t.new(heads, q.item, False, per=pairs), (q, k))
