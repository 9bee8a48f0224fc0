"""ESM-2's layers: norms in front of the blocks, a rotary in fp32, and a GELU in Python (``modeling_esm.py``)."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Var, function
from lintfit.memory.activations.traits import Traits


def unread(facts: ModelFacts) -> bool:
    """Whether positions are learned, embeddings are normed (ESM-1b), or it is more than an encoder (ESMFold)."""
    config = facts.config
    learned = config.get("position_embedding_type", "absolute") != "rotary"
    return learned or any(config.get(key) for key in ("emb_layer_norm_before", "is_decoder", "is_folding_model"))


TRAITS = Traits(unread=unread)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One layer of the encoder."""
    facts = t.facts
    h, i, rate = facts.hidden, facts.intermediate, t.rate("hidden_dropout_prob")
    t.held = (x,)
    normed = t.layernorm(x)
    t.held = (x, normed)
    y = _attention(t, normed)
    t.held = (x, normed, y)
    branch = t.linear("dense", y, h, h, bias=True)
    t.held = (x, normed, y, branch)
    branch = t.dropped(branch, rate)
    t.held = (x, normed, y, branch)
    x, given = t.add(branch, x), x
    t.lasting = ()  # ``EsmAttention.forward``, which ends here, has the variable of attention's weights.
    t.held = (given, x)
    normed = t.layernorm(x)
    t.held = (given, x, normed)
    y = gelu(t, t.linear("dense", normed, h, i, bias=True))
    t.held = (given, x, normed, y)
    branch = t.linear("dense", y, i, h, bias=True)
    t.held = (given, x, normed, y, branch)
    branch = t.dropped(branch, rate)
    t.held = (given, x, normed, y, branch)
    return t.add(branch, x)


@function
def _attention(t: Layer, x: Var) -> Var:
    facts = t.facts
    h, shape = facts.hidden, Heads(facts.heads, facts.heads, facts.head_dim)
    q, k, v = (t.linear(name, x, h, h, bias=True) for name in ("query", "key", "value"))
    held = t.held
    t.name(k, v)
    q, k = turned_in_full(t, t.map(q), k)
    t.held = held
    return attend(t, q, k, v, shape, dropout=t.rate("attention_probs_dropout_prob"), half_softmax=True)


@function
def turned_in_full(t: Layer, q: Var, k: Var) -> tuple[Var, Var]:
    """The rotary in fp32, for each of whose two products queries and keys are cast anew."""
    turned: list[Var] = []
    held = (*t.held, q, k)
    t.held = held
    for part in (q, k):
        cosine = t.map(t.cast(part, 4))
        t.held = (*held, *turned, cosine)
        full = t.cast(part, 4)
        below = t.op(t.like(full, full.width // 2, 4, False), (full,))
        half = t.op(t.like(full, full.width, 4, full.grad), (full, below), temp=((6 * full.width, full.per),))
        turned.append(t.add(cosine, t.map(half)))
        t.held = (*held, *turned)
    return t.cast(turned[0], q.item), t.cast(turned[1], k.item)


@function
def gelu(t: Layer, x: Var) -> Var:
    """``x * 0.5 * (1.0 + erf(x / sqrt(2)))``, of which both factors and the argument of erf are kept."""
    held = (*t.held, x)
    t.held = held
    half = t.map(x)
    t.held = (*held, half)
    scaled = t.map(x)
    # ``2 / sqrt(pi) * exp(-(self.pow(2))) * grad``: what C++ makes on the way lives to the end of the expression.
    curve = t.map(scaled, (scaled,), temp=(scaled.scratch(4 * scaled.item),))
    return t.mul(half, t.map(curve))
