"""MiniMax-01's lightning attention: linear attention in blocks of tokens (``MiniMaxLightningAttention``).

What a block's tokens get from one another goes through its own scores, what they get from earlier ones through a state
of each head, which every block leaves to the next. Queries, keys and values are views of one projection: where there
are several sequences each product needs a copy of its part of them.
"""

from __future__ import annotations

from lintfit.frozen import frozen
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import Extent, Storage, Var, saved_factors, sequences


@frozen
class Blocks:
    """Blocks of ``size`` tokens, of ``heads`` heads with ``dim`` elements each."""

    size: int
    heads: int
    dim: int

    @property
    def width(self) -> int:
        """Elements of all heads together."""
        return self.heads * self.dim

    @property
    def states(self) -> int:
        """Elements of all heads' states."""
        return self.heads * self.dim**2


@frozen
class Last:
    """Tokens of the last block of all sequences; ``square``: pairs of them. ``follows``: none where it is the first."""

    size: int
    square: bool = False
    follows: bool = False

    def __call__(self, batch: int, seq: int) -> int:
        if self.follows and seq <= self.size:
            return 0
        rest = seq - self.size * (-(-seq // self.size) - 1)
        return batch * (rest**2 if self.square else rest)


@frozen
class Whole:
    """So many of each block but the ``less`` last ones, of all sequences; at ``most`` so many blocks."""

    size: int
    each: int
    less: int
    most: int | None = None

    def __call__(self, batch: int, seq: int) -> int:
        blocks = max(-(-seq // self.size) - self.less, 0)
        return batch * self.each * (blocks if self.most is None else min(blocks, self.most))


def lightning(t: Layer, states: Var, blocks: Blocks) -> Var:
    """From queries, keys and values in one to the results; what has a name to the end of the function stays held.

    Most is alive at the last block but one on the way back; the earlier ones need no more and are written as one.
    """
    parts = t.split(states, (blocks.width,) * 3)
    size, named, listed = blocks.size, t.held, t.new(blocks.width, states.item, False)
    t.held = (*named, listed)
    first, state = _earlier(t, parts, blocks)
    between = Whole(size, size, 1, 1), Whole(size, size**2, 1, 1), Whole(size, size, 2, 1)
    second, state, loop = _block(t, parts, state, between, blocks)
    ends = Last(size), Last(size, square=True), Last(size, follows=True)
    third, state, loop = _block(t, parts, state, ends, blocks, before=loop, last=True)
    out = t.new(blocks.width, states.item, first.grad)
    if t.watched:
        t.steps.append((out, (listed,), (*t.held, third), False, ()))
    t.held = (*named, *loop, third)
    t.lasting = (*t.lasting, state)
    return t.link(out, (first, second, third), same=True)


_Loop = tuple[Var, ...]
"""What the loop over blocks has names for: scores, and results from inside and from across blocks."""


def _block(
    t: Layer, parts: list[Var], state: Var, per: tuple[Extent, Extent, Extent], blocks: Blocks, *,
    before: _Loop = (), last: bool = False,
) -> tuple[Var, Var, _Loop]:  # fmt: skip
    """One block: its results, the state that it leaves, and what has names.

    ``per``: its tokens, its pairs of tokens, and its tokens where there is a block before it. ``before``: the names of
    that one. Nobody needs the state of the ``last``, but it has a name, and its graph what that keeps.
    """
    named = t.held
    query, key, value = (t.copied_back(part, per=per[0]) for part in parts)
    t.held = (*named, *before)
    left, right = _laid_out(t, query), _laid_out(t, key)
    scores = t.op(t.new(blocks.heads, left.item, left.grad, per=per[1]), (left, right), saved_factors(left, right))
    t.held = (*named, scores, *before[1:])
    inside = _product(t, _decayed(t, scores), _laid_out(t, value), blocks.width, per[0])
    t.held = (*named, scores, inside, *before[2:])
    read = _laid_out(t, _decayed(t, t.view(query, query.width, per[2])))
    across = _product(t, read, t.cast(state, read.item), blocks.width, per[0])
    found = t.add(across, inside)
    names = scores, inside, across
    t.held = (*named, *names, found)
    if last:
        key, value, state = (Var(var.width, var.item, var.per, var.storage, False) for var in (key, value, state))
    faded = t.map(state, item=_summed(t, state))
    t.held = (*t.held, faded)
    written, right = _laid_out(t, _decayed(t, key)), _laid_out(t, value)
    if last and t.graph:
        t.lasting = (*t.lasting, written, right)
    flows, exists = (sequences, sequences) if last else (Whole(blocks.size, 1, 1, 1),) * 2
    added = t.op(
        Var(blocks.states, written.item, flows, Storage(blocks.states * written.item, exists), written.grad),
        (written, right),
        saved_factors(written, right),
    )
    left_behind = Var(blocks.states, faded.item, flows, Storage(blocks.states * faded.item, exists), written.grad)
    if t.watched:
        t.steps.append((left_behind, (faded, added), t.held, False, ()))
    t.held = named
    return found, t.link(left_behind, (faded, added), same=True), names


def _earlier(t: Layer, parts: list[Var], blocks: Blocks) -> tuple[Var, Var]:
    """All blocks but the last two, as one operation: their results and the state that they leave."""
    size, item, width = blocks.size, parts[0].item, blocks.width
    tokens, following = Whole(size, size, 2), Whole(size, size, 3)
    slices = [t.copied_back(part, per=Whole(size, size, 2, 1)) for part in parts]
    kept = [t.new(blocks.states, item, False, per=sequences)]  # the zeros that the first block starts from
    kept.append(t.new(blocks.states, item, False, per=Whole(size, 1, 3)))
    kept.append(t.new(blocks.heads, item, False, per=Whole(size, size**2, 2)))
    kept += [t.new(width, item, False, per=tokens), t.new(width, item, False, per=following)]
    kept += [t.new(width, item, False, per=tokens) for _ in range(4)] if t.batched else [parts[0]]
    leaves = Whole(size, 1, 2, 1)
    summed = 4 if t.recipe.autocast else item
    state = Var(blocks.states, summed, leaves, Storage(blocks.states * summed, leaves), parts[0].grad)
    found = Var(width, item, tokens, t.new(1, 1, False).storage, parts[0].grad)
    return t.link(found, ()), t.op(state, slices, kept)


def _laid_out(t: Layer, x: Var) -> Var:
    """What a product takes: batch and heads merged, which copies where there are several sequences."""
    return t.add(x) if t.batched else x


def _product(t: Layer, a: Var, b: Var, width: int, per: Extent) -> Var:
    """A product, whose gradient is a part of all blocks' and is copied where batch and heads are merged."""
    out = t.op(t.new(width, a.item, a.grad or b.grad, per=per), (a, b), saved_factors(a, b))
    return t.copied_back(out) if t.batched else out


def _decayed(t: Layer, x: Var) -> Var:
    """x by the decays, buffers of the weights' dtype, as a product takes it."""
    item = max(x.item, t.recipe.weights)
    out = t.map(x, item=item, temp=[t.uncast(x, item)] if x.item < item else ())
    return t.cast(out, 2) if t.recipe.autocast else out


def _summed(t: Layer, state: Var) -> int:
    """Bytes of an element of a state that has faded: by an exponential, which autocast takes in fp32."""
    return 4 if t.recipe.autocast else state.item
