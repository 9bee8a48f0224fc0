"""Kimi's delta attention in plain torch, chunk by chunk (``chunk_kimi_delta_attention`` of transformers 5.23).

What runs where the package flash-linear-attention is not installed. It is the gated delta rule with a decay for every
element of a key, so that what a chunk's tokens have of each other is a tensor of 64 x 64 elements a *channel*, not a
head: three of these are kept. All of it is fp32.
"""

from __future__ import annotations

from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.delta_rule import (
    CHUNK,
    SUBSTITUTED,
    Heads,
    chunks,
    earlier,
    filled_up,
    following,
    last_but_one,
    last_but_two,
    left_state,
)
from lintfit.memory.activations.tape import Extent, Var, function, saved_factors, sequences

SQUARE = CHUNK * CHUNK


def kimi_delta_rule(t: Layer, query: Var, key: Var, value: Var, decay: Var, beta: Var, heads: Heads) -> Var:
    """From queries, keys and values of every token, the decays of its channels and the rates of its heads, to the
    heads' results."""
    item, held = query.item, t.held
    # Laid out head by head, then cast; the gradients are laid out back.
    parts = []
    for x in (query, key, value, beta, decay):
        parts.append(t.cast(t.add(t.copied_back(x)), 4))
        t.held = (*held, *parts)
    query, key, value, beta, decay = parts
    query, key = _unit_length(t, query, heads), _unit_length(t, key, heads)
    t.held = (*held, query, key, value, beta, decay)
    query = t.map(filled_up(t, query))
    key, value, decay, beta = (filled_up(t, x) for x in (key, value, decay, beta))
    t.held = (*held, query, key, value, beta)
    out = _scanned(t, query, key, value, decay, beta, heads)
    named, t.held = t.held, (*t.held, out)
    laid_out = t.add(out)
    t.held = (*named, laid_out)
    result = t.new(heads.value_width, item, laid_out.grad)
    if item < out.item:
        t.op(result, (laid_out,))
    else:
        t.link(result, (laid_out,), same=True)
    t.held = held
    return result


def _unit_length(t: Layer, x: Var, heads: Heads) -> Var:
    """``x / sqrt((x * x).sum(-1) + eps)``: saves x and the roots."""
    held = t.held
    t.held = (*held, t.like(x, x.width, x.item, False))
    total = t.op(t.like(x, heads.values, 4, x.grad), (x, x), (x,))
    t.held = held
    root = t.rsqrt(t.add(total))
    out = t.like(x, x.width, 4, x.grad)
    return t.op(out, (x, root), (x, root) if x.grad else (), temp=(x.scratch(3 * 4),))


def _pairwise(t: Layer, a: Var, b: Var, decay: Var, per: Extent, heads: Heads) -> Var:
    """``(a.unsqueeze(-2) * b.unsqueeze(-3) * decay).sum(-1)``: keeps the first product and the decay. Each of the
    first one's gradients is summed up from a product of its size."""
    wide = SQUARE * heads.wide_keys
    both = t.new(wide, 4, a.grad or b.grad, per=per)
    both = t.op(both, (a, b), saved_factors(a, b), temp=(both.scratch(4),))
    decay = decay if decay.per is per else t.copied_back(decay, per=per)  # one chunk's part of it
    product = t.new(wide, 4, False, per=per)
    if not (both.grad or decay.grad):
        return t.op(t.new(SQUARE * heads.values, 4, False, per=per), (t.op(product, (both, decay)),))
    held = t.held
    t.held = (*held, product)
    scores = t.new(SQUARE * heads.values, 4, both.grad or decay.grad, per=per)
    t.op(scores, (both, decay), saved_factors(both, decay))
    t.held = held
    return scores


@function
def _scanned(t: Layer, query: Var, key: Var, value: Var, decay: Var, beta: Var, heads: Heads) -> Var:
    """What is computed inside all chunks at once, then the chunks one after the other."""
    v_beta, k_beta = t.by_row(value, beta), t.by_row(key, beta)
    t.held = (*t.held, v_beta, k_beta)
    total = t.op(t.like(decay, decay.width, 4, decay.grad), (decay,))
    t.held = (*t.held, total)
    wide = SQUARE * heads.wide_keys
    difference = t.op(t.new(wide, 4, total.grad, per=chunks), (total,), temp=((4 * wide, chunks),))
    fades = t.exp(t.map(difference, (t.constant(SQUARE, 1),)))
    t.held = (*t.held, fades)
    system = t.map(t.map(_pairwise(t, k_beta, key, fades, chunks, heads)))
    system = t.map(system, (t.new(SUBSTITUTED * heads.values, 4, False, per=chunks),))
    system = t.add(system)
    t.held = (*t.held, system)
    values = t.bmm(system, v_beta, v_beta.width)
    t.held = (*t.held, values)
    erased = t.bmm(system, t.mul(k_beta, t.exp(total)), k_beta.width)
    t.held = (*t.held, erased)
    results = t.like(values, values.width, values.item, values.grad)
    t.held = (*t.held, results)
    sources = (values, erased, query, key, total, fades)
    out, state = _earlier_chunks(t, sources, results, heads)
    out, state = _chunk(t, sources, out, state, last_but_one, heads)
    out, _ = _chunk(t, sources, out, state, sequences, heads, ends=True)
    return out


def _chunk(
    t: Layer, sources: tuple[Var, ...], out: Var, state: Var, per: Extent, heads: Heads, *, ends: bool = False
) -> tuple[Var, Var]:
    """One chunk: the results with its own, and the state that it leaves; ``ends``: nobody needs that."""
    rows = CHUNK * heads.value_width
    *parts, fades = sources
    values, erased, query, key, total = (t.copied_back(source, per=per) for source in parts)
    across = t.bmm(t.mul(query, t.exp(total)), state, rows)
    scores = t.map(_pairwise(t, query, key, fades, per, heads))
    predicted = t.bmm(erased, state, rows)
    new = t.add(values, t.copied_back(predicted))
    found = t.add(across, t.bmm(scores, new, rows))
    joined = Var(out.width, out.item, out.per, out.storage, out.grad)
    if found.grad:
        temp = found.scratch(4 if found.item == 4 else 2 * 4)  # zeros for what was there, and what is cast
        t.nodes.append(((joined,), (out, found), False, (), (temp,), False, (), ()))
    if ends:
        return joined, state
    last = t.copied_back(total, heads.wide_keys)
    decayed = t.by_row(state, t.exp(last))
    left_over = t.exp(t.op(t.new(total.width, 4, total.grad, per=per), (total,)))
    added = t.bmm(t.mul(key, left_over), new, state.width)
    left = left_state(state.width, sequences, last_but_one, decayed.grad or added.grad)
    return joined, t.link(left, (decayed, added), same=True)


def _earlier_chunks(t: Layer, sources: tuple[Var, ...], results: Var, heads: Heads) -> tuple[Var, Var]:
    """All chunks but the last two, as one operation: the results so far and the state that they leave."""
    width = heads.values * heads.key_dim * heads.value_dim
    parts = [t.copied_back(source, per=last_but_one) for source in sources]
    out = t.link(results, ())
    left = left_state(width, last_but_one, last_but_two, sources[0].grad)
    return out, t.op(left, parts, _kept_of_earlier_chunks(t, sources, width, heads))


def _kept_of_earlier_chunks(t: Layer, sources: tuple[Var, ...], state: int, heads: Heads) -> list[Var]:
    """What these keep: the states, the new values, what queries and keys fade by, the products of both, the scores, and
    the whole of what they read, or under autocast copies of parts.

    The first chunk's state has no gradient, for which its erased keys and queries would be kept.
    """
    values, erased, query, key, total, fades = sources
    item = 2 if t.recipe.autocast else 4
    flows = query.grad or key.grad
    kept = [*saved_factors(query, total), *saved_factors(key, total), *saved_factors(query, key)]
    kept = [var for var in kept if var is not total]
    if query.grad or key.grad:
        kept.append(fades)
    if total.grad:
        kept += [t.new(SQUARE * heads.wide_keys, 4, False, per=earlier), t.new(state, 4, False, per=following)]
    fading = (query.grad or total.grad) + (key.grad or total.grad)
    kept += [t.new(total.width, 4, False, per=earlier) for _ in range(fading)]
    new = t.new(values.width, item, False, per=earlier)
    scores, faded = (t.new(size, item, False, per=earlier) for size in (SQUARE * heads.values, key.width))
    kept += [*([new] if flows or total.grad else []), scores, faded, t.new(query.width, item, False, per=following)]
    if t.recipe.autocast:
        kept += [t.new(state, 2, False, per=following) for _ in range(2)]
        kept.append(t.new(state, 2, False, per=last_but_two))
    elif not total.grad:
        kept.append(t.new(state, 4, False, per=earlier))
    return [*kept, erased]
