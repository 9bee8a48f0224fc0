"""T5's layers: an encoder's, and a decoder's that attend to what it made; relative positions are biases of the scores.

The first layer of each half makes biases that all of its layers share; on the way back the last one makes their
gradient, and the others add to it. After ``modeling_t5.py`` of transformers 5.15 and later; before, attention is eager
alone, with a softmax in fp32, and the biases hold the mask of every sequence.
"""

from __future__ import annotations

from collections.abc import Callable

from lintfit.catalog.facts import ModelFacts
from lintfit.frozen import replace
from lintfit.memory.activations.attention import Heads, attend, eager
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.halves import alone, crosses, decodes, states
from lintfit.memory.activations.recipe import ALIGNED, Beside, Recipe
from lintfit.memory.activations.tape import INDEX, Extent, Var, function, pairs, square
from lintfit.memory.activations.traits import Halves, Traits

OWN_INTERFACE = (5, 15)
"""The first transformers version that hands biases to an attention of transformers' own."""

GATED_GELU = "gelu_new"
"""What ``gated-gelu`` means (``T5Config``)."""


def place(facts: ModelFacts, index: int) -> str:
    """Which of the layers that share biases one is."""
    first, last = index == 0, index == facts.layers - 1
    return "only" if first and last else "first" if first else "last" if last else ""


def layers(facts: ModelFacts) -> tuple[int, int]:
    """Layers of the encoder and of the decoder."""
    encoder = int(facts.config["num_layers"])
    return encoder, int(facts.config.get("num_decoder_layers") or encoder)


def _rows(batch: int, seq: int) -> int:
    """Pairs of positions, in rows of a multiple of :data:`ALIGNED`, as the memory-efficient kernel takes them."""
    return seq * (-(-seq // ALIGNED) * ALIGNED)


def masks_in_biases(recipe: Recipe) -> bool:
    """Whether the mask of every sequence is added to the biases once for all layers."""
    return recipe.transformers < OWN_INTERFACE


def layer(t: Layer, x: Var, index: int) -> Var:
    """One layer of either half: attention among its own tokens, to the encoder's states, and the MLP."""
    first, own = index == 0, alone(t, x)
    last = index == t.facts.layers - 1 or own
    # A checkpointed first layer makes what all share once more, when it is run again.
    again = t.early and first
    biases = _shared(t, again=again, flows=own and not first)
    x = _residual(t, x, lambda y: _self_attention(t, y, biases, first=first, last=last))
    if decodes(t.facts):
        zeros = _zeros(t, again=again)
        x = _residual(t, x, lambda y: _cross_attention(t, y, zeros, last=last))
        t.lasting = (*t.lasting, zeros)
    t.lasting = (*t.lasting, biases)
    return _residual(t, x, lambda y: _mlp(t, y))


def ending(t: Layer, x: Var) -> Var:
    """The norm and the dropout behind the last layer of either half."""
    return t.dropped(norm(t, x), t.rate("dropout_rate"))


TRAITS = Traits(crosses=crosses, place=place, halves=Halves(layers, ending, biased=True))


def norm(t: Layer, x: Var) -> Var:
    """``weight * (x * rsqrt(mean(x.float()^2) + eps)).to(dtype)``, whose first product is in fp32."""
    held = t.held
    t.name(x)
    full = t.cast(x, 4)
    squared = t.op(t.like(x, x.width, 4, x.grad), (full,), (full,), temp=(full.scratch(2 * 4),))
    root = t.rsqrt(t.op(t.like(x, 1, 4, x.grad), (squared,)))
    normed = t.op(t.like(x, x.width, 4, x.grad), (x, root), (x, root), temp=(x.scratch(4),))
    t.name(normed)
    item, trains = 4 if t.recipe.upcast_norms else t.recipe.weights, t.recipe.trains("layer_norm")
    given = t.cast(normed, item) if item == 2 else normed
    made = (x.width * item,) if trains else ()
    out = t.like(x, x.width, max(given.item, item), x.grad or trains)
    saved, temp = ((given,), (x.scratch(given.item),)) if trains else ((), ())
    t.op(out, (given,), saved, temp=temp, weights=made, parameter=given.grad)
    t.held = held
    return out


def _residual(t: Layer, x: Var, branch: Callable[[Var], Var]) -> Var:
    """``x + dropout(branch(norm(x)))``."""
    t.held = (x,)
    y = norm(t, x)
    t.held = (x, y)
    made = branch(y)
    t.held = (x, y, made)
    found = t.add(x, t.dropped(made, t.rate("dropout_rate")))
    t.held = (found,)
    return found


def _shared(t: Layer, *, again: bool, flows: bool) -> Var:
    """The biases of a half's own positions, which somebody else counts but where they are made ``again``.

    ``flows``: whether they need a gradient whatever trains: reentrant checkpointing asks for one of all that another
    layer gave back.
    """
    per = pairs if masks_in_biases(t.recipe) else square
    biases = t.new(t.facts.heads, t.recipe.weights, flows or t.recipe.trains("relative_attention_bias"), per=per)
    biases.storage.external = not again
    return biases


def _zeros(t: Layer, *, again: bool) -> Var:
    """The biases over the encoder's positions: zeros in the queries' dtype."""
    beside = _beside(t)
    per = beside.pairs if masks_in_biases(t.recipe) else beside.squares
    zeros = t.new(t.facts.heads, 2 if t.recipe.autocast else t.recipe.weights, beside.opens, per=per)
    zeros.storage.external = not again
    return zeros


@function
def _self_attention(t: Layer, x: Var, biases: Var, *, first: bool, last: bool) -> Var:
    q, k, v = (t.linear(name, x, t.facts.hidden, _wide(t.facts)) for name in ("q", "k", "v"))
    t.name(q, k, v)
    if first:
        _looked_up(t, biases)
    return _out(t, _attended(t, q, k, v, biases if last else t.added(biases)))


def _looked_up(t: Layer, biases: Var) -> None:
    """The biases by distances, which the table's backward asks for."""
    buckets, row = int(t.facts.config["relative_attention_num_buckets"]), t.facts.heads * biases.item
    distances = t.new(1, INDEX, False, per=square)
    # The gradient laid out by positions, and what sorting takes (:func:`.embedding.scratch`).
    scratch = ((row + 6 * INDEX, square),) if biases.grad else ()
    t.op(biases, (), (distances,) if biases.grad else (), temp=scratch, weights=(buckets * row,) if biases.grad else ())


def _attended(t: Layer, q: Var, k: Var, v: Var, biases: Var) -> Var:
    """Attention of a half's own tokens."""
    heads, rate = Heads(t.facts.heads, t.facts.heads, t.facts.head_dim), t.rate("dropout_rate")
    if t.recipe.attention == "eager":
        return _eager(t, q, k, v, _for_all(t, biases, pairs), pairs)
    item = biases.item
    masked = t.recipe.padded and not decodes(t.facts)
    held = t.held
    if decodes(t.facts) or masked:
        seen = t.new(1, 1, False, per=pairs if masked else square)
        seen.storage.external = masked  # the model's own mask; a causal one is made in each layer
        t.name(seen)
        biases = t.op(t.new(t.facts.heads, item, biases.grad, per=pairs if masked else square), (biases,), (seen,))
    laid_out = t.op(t.new(t.facts.heads, item, biases.grad, per=biases.per if masked else _rows), (biases,))
    t.held = held
    given = laid_out if masked else _for_all(t, t.cast(laid_out, q.item), pairs)
    return attend(t, q, k, v, heads, dropout=rate, mask=given, half_softmax=True)


def _for_all(t: Layer, biases: Var, per: Extent) -> Var:
    """The biases as every sequence takes them, whose gradients are summed up."""
    if biases.per is per:
        return biases
    return t.link(Var(t.facts.heads, biases.item, per, biases.storage, biases.grad), (biases,))


def _eager(t: Layer, q: Var, k: Var, v: Var, biases: Var, per: Extent) -> Var:
    facts, rate = t.facts, t.rate("dropout_rate")
    drops = rate > 0 and t.recipe.dropout
    own = not masks_in_biases(t.recipe)
    held = t.held
    heads = Heads(facts.heads, facts.heads, facts.head_dim)
    out = eager(t, q, k, v, heads, drops=drops, half_softmax=own, per=per, added=biases)
    t.held = held
    return out


@function
def _cross_attention(t: Layer, x: Var, zeros: Var, *, last: bool) -> Var:
    """Queries of the decoder, keys and values of the encoder's states."""
    h, wide = t.facts.hidden, _wide(t.facts)
    q = t.linear("q", x, h, wide)
    k, v = (t.linear(name, each, h, wide) for name, each in zip(("k", "v"), states(t, last=last), strict=True))
    t.name(q, k, v)
    t.op(zeros, ())
    return _out(t, _crossed(t, q, k, v, zeros if last else t.added(zeros)))


def _beside(t: Layer) -> Beside:
    """The encoder's states."""
    assert t.recipe.beside is not None
    return t.recipe.beside


def _crossed(t: Layer, q: Var, k: Var, v: Var, given: Var) -> Var:
    """Attention over what the encoder made."""
    facts, beside = t.facts, _beside(t)
    if t.recipe.attention == "eager":
        return _eager(t, q, k, v, _for_all(t, given, beside.pairs), beside.pairs)
    if beside.mask_item:
        mask = t.new(1, beside.mask_item, False, per=beside.pairs)
        mask.storage.external = True
        given = t.op(t.new(facts.heads, q.item, given.grad, per=beside.pairs), (given,), (mask,))
    elif beside.count % ALIGNED:
        given = t.op(t.new(facts.heads, q.item, given.grad, per=beside.square_rows), (given,))
    heads, rate = Heads(facts.heads, facts.heads, facts.head_dim), t.rate("dropout_rate")
    every = _for_all(t, given, beside.pairs)
    return attend(t, q, k, v, heads, dropout=rate, mask=every, per=beside.pairs, half_softmax=True)


def _wide(facts: ModelFacts) -> int:
    return facts.heads * facts.head_dim


def _out(t: Layer, mixed: Var) -> Var:
    return t.linear("o", mixed, _wide(t.facts), t.facts.hidden)


@function
def _mlp(t: Layer, x: Var) -> Var:
    facts = t.facts
    h, i, rate = facts.hidden, facts.intermediate, t.rate("dropout_rate")
    if facts.gated:
        name = GATED_GELU if facts.activation == "gelu" else facts.activation
        gate = t.activation(t.linear("wi_0", x, h, i), name)
        t.name(gate)
        linear = t.linear("wi_1", x, h, i)
        t.name(linear)
        y = t.mul(gate, linear)
    else:
        y = t.activation(t.linear("wi", x, h, i), facts.activation)
    return _wo(t, t.dropped(y, rate), i, h)


def _wo(t: Layer, x: Var, rows: int, columns: int) -> Var:
    """The projection that no quantiser takes (``_keep_in_fp32_modules``), on what is cast to its weight's dtype."""
    recipe = t.recipe
    item = 4 if recipe.fp32_out else recipe.weights
    t.recipe = replace(recipe, quantized=False, weights=item)
    x = t.cast(x, item)
    t.name(x)
    out = t.linear("wo", x, rows, columns)
    t.recipe = recipe
    return out
