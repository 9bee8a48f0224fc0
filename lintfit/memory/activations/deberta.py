"""DeBERTa v2's and v3's layers: BERT's, with scores by content and by relative positions (``modeling_deberta_v2.py``).

All of it is written out in Python, whatever the attention that is asked for.
"""

from __future__ import annotations

from lintfit.catalog.architectures import deberta_v2
from lintfit.catalog.config import Config
from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.bert import behind_attention
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.shared import Sharing
from lintfit.memory.activations.tape import CAST, INDEX, Var, function, pairs, saved_factors, sequences, square, tokens
from lintfit.memory.activations.traits import Traits, Turn

FIRST, AGAIN = Turn(True, 1), Turn(False, 0)
"""A projection's two turns in a layer, for the tokens and for the relative positions."""


def unread(facts: ModelFacts) -> bool:
    """Whether embeddings are narrower than the layers, or the head multiplies by the embedding itself; no published
    model has either."""
    config = Config(facts.config, {}, facts.name)
    return config.size("embedding_size", default=facts.hidden) != facts.hidden or not config.flag("legacy", True)


TRAITS = Traits(unread=unread)


def layer(t: Layer, x: Var, index: int) -> Var:
    """One layer of the encoder."""
    t.held = (x,)
    return behind_attention(t, x, _attention(t, x))


@function
def _attention(t: Layer, x: Var) -> Var:
    """Attention whose names for its scores last until it returns."""
    facts = t.facts
    h, heads = facts.hidden, facts.heads
    config = Config(facts.config, {}, facts.name)
    span, (content, position) = deberta_v2.span(config), deberta_v2.relative(config)
    shares = config.flag("share_att_key") and bool(span)
    base, parts = t.held, list[Var]()
    for name in ("query_proj", "key_proj", "value_proj"):
        twice = shares and name != "value_proj"
        made = _of(t, twice, FIRST, name, x, h)
        parts.append(t.map(made))  # head by head
        t.held = (*base, *parts)
    q, k, v = parts
    scaled = t.map(k)
    scores = t.op(t.new(heads, q.item, q.grad or k.grad, per=pairs), (q, scaled), saved_factors(q, scaled))
    named: tuple[Var, ...] = (*base, *parts)
    t.held = (*named, scores)
    if span:
        seen = t.dropped(_table(t, span), t.rate("hidden_dropout_prob"))
        named = (*named, seen)
        t.held = (*named, scores)
        beside = _beside(t, q, k, seen, span, content=content, position=position, shares=shares)
        t.held = (*named, scores, *beside)
        scores = t.add(scores, *beside)
        named = (*named, *beside)
        t.held = (*named, scores)
    mask = t.op(t.new(1, 1, False, per=pairs), ())
    t.held = (*named, scores, mask)
    hidden = t.op(t.new(1, 1, False, per=pairs), (mask,))
    scores = t.map(scores, (hidden,))
    t.held = (*named, scores, mask)
    weights = t.softmax(t.cast(scores, 4) if t.recipe.autocast else scores)
    t.held = (*t.held, weights)
    weights = t.dropped(weights, t.rate("attention_probs_dropout_prob"))
    t.held = (*named, scores, mask, weights)
    return t.map(_product(t, weights, v))


def _product(t: Layer, weights: Var, v: Var) -> Var:
    if t.recipe.autocast:
        weights, v = t.cast(weights, 2), t.cast(v, 2)
    out = t.like(v, v.width, v.item, weights.grad or v.grad)
    return t.op(out, (weights, v), saved_factors(weights, v))


def _of(t: Layer, shared: bool, turn: Turn, name: str, x: Var, h: int) -> Var:
    """A projection, which takes tokens and relative positions where it is ``shared``."""
    return Sharing(t, turn if shared else None, within=True).of(lambda: t.linear(name, x, h, h, bias=True))


def _table(t: Layer, span: int) -> Var:
    """The vectors of all relative positions, which somebody else counts."""
    table = t.constant(2 * span * t.facts.hidden, item_of_table(t.facts, t.recipe), not t.recipe.frozen)
    table.storage.external = True
    return table


def item_of_table(facts: ModelFacts, recipe: Recipe) -> int:
    """Bytes of an element of these vectors: a norm's result, or the parameter itself."""
    normed = deberta_v2.normed(Config(facts.config, {}, facts.name))
    return 4 if recipe.autocast and normed else recipe.weights


@function
def _beside(
    t: Layer, q: Var, k: Var, seen: Var, span: int, *, content: bool, position: bool, shares: bool
) -> tuple[Var, ...]:
    """The scores by relative positions (``disentangled_attention_bias``); none where neither asks for the other."""
    h = t.facts.hidden
    keys, queries = ("key_proj", "query_proj") if shares else ("pos_key_proj", "pos_query_proj")
    vectors: dict[str, Var] = {}
    for name, asked in ((queries, position), (keys, content)) if shares else ((keys, content), (queries, position)):
        if asked or shares:
            alike = t.map(_of(t, shares, AGAIN, name, seen, h))
            vectors[name] = t.op(t.new(h * 2 * span, alike.item, alike.grad, per=sequences), (alike,))
            t.held = (*t.held, vectors[name])
    score: tuple[Var, ...] = ()
    if content:
        found = _looked_up(t, q, vectors[keys], span, turned=False)
        t.held = (*t.held, found)
        score = (t.add(t.map(found)),)
        t.held = (*t.held, *score)
    if position:
        found = _looked_up(t, k, vectors[queries], span, turned=True)
        t.held = (*t.held, found)
        divided = t.map(found)
        score = (t.add_(score[0], divided) if score else t.add(divided),)
    return score


def _looked_up(t: Layer, x: Var, vectors: Var, span: int, *, turned: bool) -> Var:
    """Of the products with all relative positions, those of the pairs; ``turned``: counted the other way round."""
    where = t.op(t.new(1, INDEX, False, per=square), ())
    for _ in range(1 + turned):
        where = t.op(t.new(1, INDEX, False, per=square), (where,))
    t.held = (*t.held, where)
    grad, heads = x.grad or vectors.grad, t.facts.heads
    all_of_them = t.new(heads * 2 * span, x.item, grad, per=tokens)
    t.op(all_of_them, (x, vectors), saved_factors(x, vectors))
    return t.op(t.new(heads, x.item, grad, per=pairs), (all_of_them, where), (all_of_them, where))


def convolution(t: Layer, x: Var, *, flows: bool) -> Var:
    """What v2's large models add to the first layer's result ``x``: a convolution of the embeddings, and a norm.

    ``flows``: whether the embeddings need a gradient.
    """
    facts, recipe = t.facts, t.recipe
    config = Config(facts.config, {}, facts.name)
    h, trains = facts.hidden, recipe.trains("conv")
    size = h * (h // config.size("conv_groups")) * config.size("conv_kernel_size")
    words = t.like(x, h, x.item, flows)
    words.storage.external = True
    moved = t.map(words)  # channel by channel
    made = ((size + h) * recipe.weights,) if trains else ()
    inputs = saved = [moved]
    if recipe.autocast:
        inputs = saved = [t.cast(moved, 2)]
        t.held = (x, moved)
        if recipe.weights == 4:
            weight = t.constant(size, 2, trains, CAST)
            saved = [*inputs, weight]
            if trains:
                weight.storage.external = not t.graph
                t.op(weight, (), (), weights=made)
                inputs, made = saved, ()
    out = t.op(t.like(x, h, inputs[0].item, words.grad or trains), inputs, saved, weights=made)
    out = t.map(out)
    t.held = (x, out)
    padding = t.like(x, 1, 1, False)
    out = t.op(Var(h, out.item, out.per, out.storage, out.grad), (out,), (padding,))
    out = t.activation(t.dropped(out, t.rate("hidden_dropout_prob")), config.text("conv_act", default="tanh"))
    t.held = (x, out)
    both = t.add(x, out)
    t.held = (x, out, both)
    normed = t.layernorm(both)
    return t.map(normed, (t.like(x, 1, normed.item, False),))
