"""The gated delta rule in plain torch, chunk by chunk (``torch_chunk_gated_delta_rule`` of transformers 5.23).

What runs where the package flash-linear-attention is not installed: ``modeling_qwen3_next.py``, ``modeling_qwen3_5.py``
and their copies. All of it is fp32. Every chunk of 64 tokens keeps the state that it starts from: a layer saves two to
three times what one with attention does.
"""

from __future__ import annotations

from lintfit.frozen import frozen
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Chunks, Extent, Storage, Var, sequences

CHUNK = 64
"""Tokens of a chunk (``chunk_size``); a sequence is filled up to a multiple of it."""

SOLVES = (5, 17)
"""The first transformers that solves a triangular system; before, its inverse is put together row by row."""

SUBSTITUTED = sum(row + row**2 for row in range(1, CHUNK))
"""Elements that the rows of one chunk's inverse keep: each a copy of itself and of all rows above."""


@frozen
class Heads:
    """Heads of queries and keys, heads of values, and the elements of one of either."""

    keys: int
    values: int
    key_dim: int
    value_dim: int

    @property
    def key_width(self) -> int:
        return self.keys * self.key_dim

    @property
    def value_width(self) -> int:
        return self.values * self.value_dim

    @property
    def wide_keys(self) -> int:
        """Elements of queries or keys that are repeated for every head of values."""
        return self.values * self.key_dim


chunks = Chunks(CHUNK)


def last_but_one(batch: int, seq: int) -> int:
    return batch if seq > CHUNK else 0


def last_but_two(batch: int, seq: int) -> int:
    return batch if seq > 2 * CHUNK else 0


def earlier(batch: int, seq: int) -> int:
    """Chunks of all sequences but the last two of each."""
    return batch * max(-(-seq // CHUNK) - 2, 0)


def following(batch: int, seq: int) -> int:
    """The same without the first of each sequence, which starts from nothing."""
    return batch * max(-(-seq // CHUNK) - 3, 0)


def _whole(batch: int, seq: int) -> int:
    """Chunks of all sequences where these are whole chunks, so that nothing is filled up."""
    return 0 if seq % CHUNK else chunks(batch, seq)


def gated_delta_rule(t: Layer, query: Var, key: Var, value: Var, beta: Var, decay: Var, heads: Heads) -> Var:
    """From queries, keys and values of every token, the rate and the decay of its heads, to the heads' results."""
    item, held = query.item, t.held
    if heads.keys < heads.values:
        query, key = (t.op(t.like(x, heads.wide_keys, x.item, x.grad), (x,)) for x in (query, key))
        t.held = (*held, query, key)
    parts = [t.cast(x, 4) for x in (query, key, value, beta)]
    strided = parts[0] is query
    t.held = (*held, *parts)
    query, key, value, beta = parts
    query, key = _unit_length(t, query, heads), _unit_length(t, key, heads)
    t.held = (*held, query, key, value, beta)
    query = t.map(query)
    query, key, value, beta, decay = (filled_up(t, x) for x in (query, key, value, beta, decay))
    t.held = (*held, value, beta, decay)
    written = _within(t, query, key, value, beta, decay, heads, strided=strided)
    out = _scanned(t, written, heads)
    named, t.held = t.held, (*t.held, out)
    # The results lie head by head and column by column: a copy puts them in order, another turns them back.
    laid_out = t.add(out)
    t.held = (*named, laid_out)
    result = t.new(heads.value_width, item, laid_out.grad)
    if item < 4:
        t.op(result, (laid_out,))
    else:
        t.link(result, (laid_out,), same=True)
    t.held = held
    return result


def _unit_length(t: Layer, x: Var, heads: Heads) -> Var:
    """``x * rsqrt((x * x).sum(-1) + eps)``: saves x and the factors. The sum's gradient is a view."""
    held = t.held
    t.held = (*held, t.like(x, x.width, x.item, False))
    total = t.op(t.like(x, heads.values, 4, x.grad), (x, x), (x,))
    t.held = held
    return t.by_row(x, t.rsqrt(total))


def filled_up(t: Layer, x: Var) -> Var:
    """A copy with every sequence filled up to whole chunks."""
    return t.op(t.new(CHUNK * x.width, x.item, x.grad, per=chunks), (x,))


@frozen
class _Written:
    """What the chunks read and write: ``values`` to be written, ``erased`` keys, decayed queries and keys, the scores
    of each chunk's own tokens, and the results; ``decays``: whether a gradient flows into the decay."""

    values: Var
    erased: Var
    queries: Var
    keys: Var
    scores: Var
    results: Var
    decays: bool


def _within(
    t: Layer, query: Var, key: Var, value: Var, beta: Var, decay: Var, heads: Heads, *, strided: bool
) -> _Written:
    """What is computed inside all chunks at once; what of it has a name is held.

    ``strided``: queries and keys are still views of what was projected, so that products need copies of them in rows,
    but where filling up has made these.
    """
    rows, square = CHUNK * heads.values, CHUNK * CHUNK * heads.values
    named, v_beta = t.held, t.by_row(value, beta)
    k_beta = t.by_row(key, beta)
    named = (*named, v_beta, k_beta)
    t.held = (*named, query, key)
    # Their gradients come column by column from the solver and are copied into rows.
    k_beta, v_beta = t.copied_back(k_beta), t.copied_back(v_beta)
    total = t.op(t.like(decay, rows, 4, decay.grad), (decay,))
    if not t.graph:
        named = (*named, total)
    difference = t.op(t.new(square, 4, total.grad, per=chunks), (total,), temp=((4 * square, chunks),))
    masked = t.map(difference, (t.constant(CHUNK * CHUNK, 1),))
    pairwise = t.exp(masked)
    t.held = (*named, query, key, pairwise)
    system = t.mul(_scores(t, k_beta, key, square, strided=strided), pairwise)
    if t.recipe.transformers < SOLVES:
        system = t.map(system, (t.new(SUBSTITUTED * heads.values, 4, False, per=chunks),))
    t.held = (*t.held, system)
    scores = t.mul(_scores(t, query, key, square, strided=strided), pairwise)
    t.held = (*t.held, scores)
    decayed = t.by_row(k_beta, t.exp(total))
    t.held = (*t.held, decayed)
    values = _solved(t, system, v_beta)
    t.held = (*t.held, values)
    erased = _solved(t, system, decayed)
    results = t.like(values, values.width, 4, values.grad)
    named = (*named, pairwise, system, scores, decayed, values, erased)
    first = t.new(heads.values * heads.key_dim * heads.value_dim, 4, False, per=sequences)
    t.held = (*named, first, results, query, key)
    queries = t.by_row(query, t.exp(total))
    t.held = (*named, first, results, queries, key)
    keys = t.by_row(key, t.exp(total))
    t.held = (*named, queries, keys)
    return _Written(values, erased, queries, keys, scores, results, total.grad)


def _scores(t: Layer, a: Var, b: Var, width: int, *, strided: bool) -> Var:
    copies = [t.new(b.width, 4, False, per=_whole) for _ in range(2 * strided)]
    return t.bmm(a, b, width, copies)


def _solved(t: Layer, system: Var, right: Var) -> Var:
    """``torch.linalg.solve_triangular``: saves the system and the solution.

    The system's gradient is a product, then its opposite, then the lower half of that: two of them at once.
    """
    out = t.like(right, right.width, 4, system.grad or right.grad)
    return t.op(out, (system, right), (system, out), temp=(system.scratch(4),))


def _scanned(t: Layer, written: _Written, heads: Heads) -> Var:
    """The chunks one after the other.

    On the way back every part of a tensor has a gradient of the whole's size, which is added to the others', and the
    results' gradient is copied for each chunk (``CopySlices``). Most is alive at the last chunk but one; the earlier
    ones need no more and are written as one.
    """
    named, t.held = t.held, (*t.held, written.results)
    out, state = _earlier_chunks(t, written, heads)
    out, state, _ = _chunk(t, written, out, state, last_but_one, heads)
    out, _, loop = _chunk(t, written, out, state, sequences, heads, ends=True)
    t.held = named
    t.name(*loop)
    return out


def _chunk(
    t: Layer, written: _Written, out: Var, state: Var, per: Extent, heads: Heads, *, ends: bool = False
) -> tuple[Var, Var, tuple[Var, Var]]:
    """One chunk: the results with its own, the state that it leaves, and what the loop has names for to the function's
    end; ``ends``: nobody needs that state."""
    rows = CHUNK * heads.value_width
    values, erased = t.copied_back(written.values, per=per), t.copied_back(written.erased, per=per)
    predicted = t.bmm(erased, state, rows)
    new = t.add(values, t.copied_back(predicted))
    across = t.bmm(t.copied_back(written.queries, per=per), state, rows)
    found = t.add(across, t.bmm(t.copied_back(written.scores, per=per), new, rows))
    joined = Var(out.width, out.item, out.per, out.storage, out.grad)
    if found.grad:
        temp = found.scratch(4 if found.item == 4 else 2 * 4)  # zeros for what was there, and what is cast
        t.nodes.append(((joined,), (out, found), False, (), (temp,), False, (), ()))
    if ends:
        return joined, state, (new, across)
    decayed = t.map(state, *(((state,), None, (state.scratch(4),)) if written.decays else ()))
    added = t.bmm(t.copied_back(written.keys, per=per), new, state.width)
    left = left_state(state.width, sequences, last_but_one, decayed.grad or added.grad)
    return joined, t.link(left, (decayed, added), same=True), (new, across)


def left_state(width: int, per: Extent, flows: Extent, grad: bool) -> Var:
    """A state that one chunk leaves to the next of so many; the first one's starts from nothing without a gradient."""
    return Var(width, 4, flows, Storage(4 * width, per), grad)


def _earlier_chunks(t: Layer, written: _Written, heads: Heads) -> tuple[Var, Var]:
    """All chunks but the last two, as one operation: the results so far and the state that they leave."""
    state = heads.values * heads.key_dim * heads.value_dim
    sources = (written.values, written.erased, written.queries, written.scores, written.keys)
    parts = [t.copied_back(source, per=last_but_one) for source in sources]
    out = t.link(written.results, ())
    left = left_state(state, last_but_one, last_but_two, written.values.grad)
    return out, t.op(left, parts, _kept_of_earlier_chunks(t, written, state))


def _kept_of_earlier_chunks(t: Layer, written: _Written, state: int) -> list[Var]:
    """What these keep: the states, the new values, and the whole of what they read or, under autocast, copies of parts.

    The first chunk's state has no gradient, for which its erased keys and queries would be kept.
    """
    new = written.values.width
    if not t.recipe.autocast:
        own = [t.new(width, 4, False, per=earlier) for width in (state, new)]
        return [*own, written.erased, written.queries, written.scores, written.keys]
    halves = [*2 * [state, new], written.scores.width, written.keys.width]
    copies = [t.new(width, 2, False, per=earlier) for width in halves]
    later = [t.new(part.width, 2, False, per=following) for part in (written.erased, written.queries)]
    states = [t.new(state, 4, False, per=earlier)] if written.decays else []
    return [*states, *copies, *later]
