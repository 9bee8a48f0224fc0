"""BERT's layers and its masked-language-model head: a norm behind each block, dropout, attention in both directions.

After ``modeling_bert.py`` of transformers, of which RoBERTa, XLM-RoBERTa, CamemBERT, ELECTRA, ERNIE and data2vec
have copies. DistilBERT has layers of its own (:mod:`.distilbert`).
"""

from __future__ import annotations

from lintfit.memory.activations.attention import Heads, attend
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.frames import Transform, embedding_width
from lintfit.memory.activations.tape import Var, function


def layer(t: Layer, x: Var, index: int) -> Var:
    """One layer of the encoder."""
    t.held = (x,)
    y = attention(t, x, ("query", "key", "value"), t.rate("attention_probs_dropout_prob"))
    return behind_attention(t, x, y)


def behind_attention(t: Layer, x: Var, y: Var) -> Var:
    """The rest of a layer, from what its attention gave."""
    h, rate = t.facts.hidden, t.rate("hidden_dropout_prob")
    t.held = (x, y)
    branch = t.dropped(t.linear("dense", y, h, h, bias=True), rate)
    t.held = (x, y, branch)
    return behind_norm(t, x, t.layernorm(t.add(branch, x)))


def behind_norm(t: Layer, x: Var, middle: Var) -> Var:
    """The MLP of a layer, from the norm behind its attention on."""
    facts = t.facts
    h, i, rate = facts.hidden, facts.intermediate, t.rate("hidden_dropout_prob")
    t.held = (x, middle)
    y = t.activation(t.linear("dense", middle, h, i, bias=True), facts.activation)
    t.held = (x, middle, y)
    branch = t.dropped(t.linear("dense", y, i, h, bias=True), rate)
    t.held = (x, middle, y, branch)
    return t.layernorm(t.add(branch, middle))


@function
def attention(t: Layer, x: Var, names: tuple[str, str, str], dropout: float, out: str | None = None) -> Var:
    """Attention with a softmax in the layer's dtype; ``names``: its projections; ``out``: the one behind it, where the
    same function has it."""
    h, shape = t.facts.hidden, Heads(t.facts.heads, t.facts.heads, t.facts.head_dim)
    parts: list[Var] = []
    for name in names:
        parts.append(t.linear(name, x, h, h, bias=True))
        t.name(parts[-1])
    mixed = attend(t, parts[0], parts[1], parts[2], shape, dropout=dropout, half_softmax=True)
    if out is None:
        return mixed
    t.name(mixed)
    return t.linear(out, mixed, h, h, bias=True)


def transformed(t: Layer, x: Var, how: Transform) -> Var:
    """What the projection to the vocabulary takes, from the last layer's output; as wide as the embeddings."""
    facts, width = t.facts, embedding_width(t.facts)
    y = t.linear(how.product, x, facts.hidden, width, bias=True)
    if how.stepwise:
        from lintfit.memory.activations.esm import gelu

        return t.layernorm(gelu(t, y))
    name = str(facts.config.get(how.activation) or "gelu") if how.activation else facts.activation
    return t.layernorm(t.activation(y, name), width)
