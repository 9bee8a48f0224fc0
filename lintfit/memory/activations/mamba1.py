"""Mamba 1's mixer in plain torch, token by token (``mamba_selective_scan`` of transformers 5.23).

What runs where the package mamba-ssm is not installed: ``modeling_mamba.py``, ``modeling_falcon_mamba.py`` and
``modeling_jamba.py``. Every channel of a token has a state of 16 elements: what they fade by, what is added to them and
the states themselves are whole tensors, all but one of which autograd keeps in fp32. The way back makes the gradient of
a part of such a tensor, for every token, as one of the whole.
"""

from __future__ import annotations

from lintfit.catalog.architectures._mamba1 import BARE, WEIGHED, Mamba1
from lintfit.frozen import frozen
from lintfit.memory.activations import packages
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.convolution import convolution
from lintfit.memory.activations.tape import Extent, Var, function, rounded, sequences


@frozen
class Each:
    """Blocks for as many tokens of all sequences, but the ``less`` last ones: each of ``size`` bytes a sequence."""

    size: int
    less: int = 0

    def __call__(self, batch: int, seq: int) -> int:
        return max(seq - self.less, 0) * rounded(self.size * batch)


def _last_but_one(batch: int, seq: int) -> int:
    return batch if seq > 1 else 0


def _last_but_two(batch: int, seq: int) -> int:
    return batch if seq > 2 else 0


def entered(t: Layer, x: Var, shape: Mamba1) -> Var:
    """The projection into the mixer, of a padded batch without what pads it; both have names until it returns."""
    if t.recipe.padded:
        x = t.map(x)
        t.held = (*t.held, x)
    projected = t.linear("in_proj", x, t.facts.hidden, 2 * shape.width, bias=shape.bias)
    t.held = (*t.held, projected)
    return projected


def mixer(t: Layer, x: Var, shape: Mamba1) -> Var:
    """``MambaMixer`` and its copies, from the normalised input to the output projection."""
    h, before, dtype = t.facts.hidden, t.held, x.item
    projected = entered(t, x, shape)
    rate = rate_of(t, shape)
    if packages.MAMBA in t.recipe.kernels and shape.norms != WEIGHED:
        out = _packaged(t, projected, shape)
        t.held = before
        return out
    t.held = (*t.held, rate)
    named = t.held
    values, gate = t.split(projected, (shape.width, shape.width))
    values = convolution(t, values, "conv1d", shape.kernel, activated=True, bias=shape.conv_bias)
    if t.recipe.padded:
        values = t.map(values)
    t.held = (*named, values)
    selected = t.linear("x_proj", values, shape.width, shape.selected, strided=True)
    step, into, out_of = t.split(selected, (shape.rank, shape.state, shape.state))
    t.held = (*t.held, selected)
    if shape.norms:
        step, into, out_of = (
            _normed(t, part, width, shape)
            for part, width in ((step, shape.rank), (into, shape.state), (out_of, shape.state))
        )
        t.held = (*named, values, step, into, out_of)
    if t.recipe.quantized:
        step = t.map(t.linear("dt_proj", step, shape.rank, shape.width))
    else:
        trains = t.recipe.trains("dt_proj")
        step = t.matmul(step, shape.rank, shape.width, item=t.recipe.weights, trains=trains)
    t.held = (*named, values, step, into, out_of)
    if packages.MAMBA in t.recipe.kernels:
        out = packages.selective_scan(t, values, step, into, out_of, gate, shape.states)
    else:
        out = scan(t, values, step, rate, into, out_of, gate, shape)
    t.held = (*t.held, out)
    out = t.linear("out_proj", t.cast(out, dtype), shape.width, h, bias=shape.bias, strided=True)
    t.held = before
    return out


def _packaged(t: Layer, projected: Var, shape: Mamba1) -> Var:
    """The mixer as mamba-ssm runs it, which takes the weights of the modules and passes these by.

    Jamba norms the step before it is projected, which this function does not.
    """
    h, item = t.facts.hidden, t.recipe.weights
    own = shape.width * (shape.kernel + shape.conv_bias + shape.selected + shape.rank + 2)
    made = () if t.recipe.frozen else (own * item, shape.width * h * item)
    return packages.selective_mixer(t, projected, shape.selected, shape.states, h, made)


def _normed(t: Layer, x: Var, width: int, shape: Mamba1) -> Var:
    """Jamba's norms of the step, and of what goes into the states and comes out; Falcon Mamba's have no weights."""
    if shape.norms == WEIGHED:
        return t.rmsnorm(x, width)
    assert shape.norms == BARE
    return t.cast(t.root_mean_square(t.cast(x, 4), width), x.item)


def rate_of(t: Layer, shape: Mamba1) -> Var:
    """``-torch.exp(A_log.float())``."""
    trains = t.recipe.trains("A_log")
    made = (shape.states * t.recipe.weights,) if trains else ()
    power = t.constant(shape.states, 4, trains)
    t.op(power, (), (power,) if trains else (), weights=made)
    return t.op(t.constant(shape.states, 4, trains), (power,))


@function
def scan(t: Layer, values: Var, step: Var, rate: Var, into: Var, out_of: Var, gate: Var, shape: Mamba1) -> Var:
    """``mamba_selective_scan`` with its gate."""
    states = shape.states
    step = _step(t, step, shape)
    t.held = (*t.held, step)
    spread = t.new(states, 4, step.grad or rate.grad)
    t.op(spread, (rate, step), _factors(rate, step), temp=_products(spread, rate, step))
    fading = t.exp(spread)
    t.held = (*t.held, fading)
    full = t.cast(into, 4)
    written = t.new(states, 4, step.grad or full.grad)
    t.op(written, (step, full), _factors(step, full), temp=_products(written, step, full))
    t.held = (*t.held, written)
    full = t.cast(values, 4)
    added = t.new(states, 4, written.grad or full.grad)
    t.op(added, (written, full), _factors(written, full), temp=_products(added, full))
    t.held = (*t.held, added)
    found, state = _states(t, fading, added, out_of, values.item, shape)
    t.held = (*t.held, state)
    skipped = _skipped(t, values, shape)
    listed, t.held = t.held, (*t.held, skipped)
    found = t.add(found, skipped)
    t.held = (*listed, found)
    return t.mul(found, t.map(gate, (gate,)))


def _factors(a: Var, b: Var) -> tuple[Var, ...]:
    """Which factors are kept, each for the other's gradient."""
    return tuple(var for var, other in ((a, b), (b, a)) if other.grad)


def _products(out: Var, *spread: Var) -> list[tuple[int, Extent]]:
    """What gradients of factors that are spread over a product are summed up from, all there before the first sum."""
    return [out.scratch(4) for var in spread if var.grad]


def _step(t: Layer, step: Var, shape: Mamba1) -> Var:
    """``softplus(dt + bias)``, in fp32 under autocast."""
    trains = t.recipe.trains("dt_proj")
    made = (shape.width * t.recipe.weights,) if trains else ()
    step = t.op(t.like(step, shape.width, step.item, step.grad or trains), (step,), weights=made)
    if t.recipe.autocast:
        step = t.cast(step, 4)
    return t.map(step, (step,))


def _skipped(t: Layer, values: Var, shape: Mamba1) -> Var:
    """``hidden_states * D.float()``."""
    trains = t.recipe.trains("D")
    made = (shape.width * t.recipe.weights,) if trains else ()
    factor = t.constant(shape.width, 4, trains)
    out = t.like(values, shape.width, 4, values.grad or trains)
    temp = [t.uncast(values, 4)] if values.grad and values.item < 4 else []
    if trains:
        temp.append(out.scratch(4))
    saved = [var for var, needed in ((values, trains), (factor, values.grad)) if needed]
    return t.op(out, (values,), saved, temp=temp, weights=made)


def _states(t: Layer, fading: Var, added: Var, out_of: Var, item: int, shape: Mamba1) -> tuple[Var, Var]:
    """The states of one token after the other: what comes out of each, put together, and the last.

    Most is alive at the last token but one on the way back; the earlier ones need no more and are written as one.
    """
    listed = t.new(1, 1, False, per=Each(shape.width * item))
    t.held = (*t.held, listed)
    first, state = _earlier(t, fading, added, out_of, item, shape)
    second, state = _token(t, fading, added, out_of, state, _last_but_one, item, shape)
    third, state = _token(t, fading, added, out_of, state, sequences, item, shape)
    out = t.new(shape.width, item, first.grad)
    if t.watched:
        t.steps.append((out, (state,), t.held, False, ()))
    return t.link(out, (first, second, third), same=True), state


def _token(
    t: Layer, fading: Var, added: Var, out_of: Var, state: Var, per: Extent, item: int, shape: Mamba1
) -> tuple[Var, Var]:
    """One token: what comes out of the states, and these."""
    left = t.mul(t.copied_back(fading, per=per), state)
    state = t.add(left, t.copied_back(added, per=per))
    half = t.cast(state, item)
    out = t.bmm(half, t.copied_back(out_of, per=per), shape.width)
    return t.copied_back(out), state


def _earlier(t: Layer, fading: Var, added: Var, out_of: Var, item: int, shape: Mamba1) -> tuple[Var, Var]:
    """All tokens but the last two, as one operation: what comes out of their states, and the states they leave."""
    parts = [t.copied_back(part, per=_last_but_two) for part in (fading, added, out_of)]
    out = t.link(Var(shape.width, item, _last_but_two, t.new(1, 1, False).storage, fading.grad), ())
    state = t.new(shape.states, 4, fading.grad, per=_last_but_one)
    width = shape.states
    kept = [t.new(width, item, False, per=sequences)]  # the zeros that the first token starts from
    kept.append(t.new(1, 1, False, per=Each(width * 4, 3)))
    kept.append(state if item == 4 else t.new(1, 1, False, per=Each(width * item, 2)))
    cast = t.recipe.autocast and out_of.item == 4
    kept.append(t.new(1, 1, False, per=Each(shape.state * 2, 2)) if cast else out_of)
    return out, t.op(state, parts, [fading, *kept])
