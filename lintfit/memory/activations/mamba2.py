"""Mamba 2's mixer in plain torch, in chunks (``mamba2_chunk_scan`` of transformers 5.23).

What runs where the packages mamba-ssm and causal-conv1d are not installed: ``modeling_granitemoehybrid.py`` and its
relatives. All of the scan is fp32 but for its products under autocast. Every head has a square of scores for each
chunk: of 256 tokens and 128 heads that is 128 KiB a token, three times.
"""

from __future__ import annotations

from typing import Literal

from lintfit.catalog.architectures._mamba2 import Mamba2
from lintfit.frozen import frozen
from lintfit.memory.activations import packages
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.convolution import convolution
from lintfit.memory.activations.tape import Chunks, Var, sequences


@frozen
class Style:
    """How a family writes the mixer.

    ``multiplied``: what goes into the first projection is multiplied by a number, what comes out of it by a buffer of
    the weights' dtype. ``gate``: whether the gate is taken in before the norm, behind it, or stands alone, in the
    layer's dtype.
    """

    multiplied: bool = False
    gate: Literal["before norm", "behind norm", "alone"] = "before norm"


PLAIN = Style()


def mixer(t: Layer, x: Var, shape: Mamba2, style: Style = PLAIN) -> Var:
    """``GraniteMoeHybridMambaLayer`` and its copies, from the normalised input to the output projection."""
    h, before = t.facts.hidden, t.held
    if t.recipe.padded:
        x = t.map(x)
        t.held = (*before, x)
    dtype = x.item
    if style.multiplied:
        x = t.map(x)
        t.held = (*before, x)
    projected = t.linear("in_proj", x, h, shape.width + shape.mixed + shape.heads, bias=shape.in_bias)
    if style.multiplied:
        projected = t.map(projected, item=max(projected.item, t.recipe.weights))
    t.held = (*t.held, projected)
    if packages.MAMBA in t.recipe.kernels and style.gate != "behind norm":
        out = _packaged(t, projected, shape)
        t.held = before
        return out
    gate, mixed, step = t.split(projected, (shape.width, shape.mixed, shape.heads))
    mixed = convolution(t, mixed, "conv1d", shape.kernel, activated=True, bias=shape.conv_bias)
    if t.recipe.padded:
        mixed = t.map(mixed)
    t.held = (*before, projected, mixed)
    values, into, out_of = t.split(mixed, (shape.width, shape.shared, shape.shared))
    out = _gated(t, _scan(t, values, into, out_of, step, shape), gate, shape, style)
    t.held = (*t.held, out)
    out = t.linear("out_proj", t.cast(out, dtype), shape.width, h, bias=shape.out_bias)
    t.held = before
    return out


def _packaged(t: Layer, projected: Var, shape: Mamba2) -> Var:
    """The mixer as mamba-ssm runs it, which takes the weights of the modules and passes these by."""
    recipe, h, item = t.recipe, t.facts.hidden, t.recipe.weights
    own = shape.mixed * (shape.kernel + shape.conv_bias) + 3 * shape.heads + shape.width
    out = h * (shape.width + shape.out_bias)
    weights = () if recipe.frozen else (own * item, out * item)
    states = 4 * shape.states, Chunks(shape.chunk)
    return packages.mamba(t, projected, (shape.width, shape.mixed, h), states, weights)


def _gated(t: Layer, x: Var, gate: Var, shape: Mamba2, style: Style) -> Var:
    """The scan's results in fp32, with the gate and the norm; all of them, filled up, are saved."""
    held = t.held
    t.held = (*held, x)
    if style.gate == "behind norm":
        rows = Var(shape.width, 4, gate.per, x.storage, x.grad)
        out = _normed(t, t.link(rows, (x,), same=True), shape)
        t.held = (*held, out)
        full = t.cast(gate, 4)
        out = t.mul(out, t.map(full, (full,)))
        t.held = held
        return out
    gate = gate if style.gate == "alone" else t.cast(gate, 4)
    opened = t.map(gate, (gate,))
    out = t.like(gate, shape.width, 4, x.grad or opened.grad)
    t.op(out, (x, opened), (x, opened), temp=[t.uncast(opened, 4)] if opened.item < 4 else ())
    t.held = (*held, out)
    out = out if style.gate == "alone" else _normed(t, out, shape)
    t.held = held
    return out


def _normed(t: Layer, x: Var, shape: Mamba2) -> Var:
    normed = t.root_mean_square(x, shape.width // shape.groups)
    return t.scaled(normed, shape.width, t.recipe.trains("norm"))


def _scan(t: Layer, values: Var, into: Var, out_of: Var, step: Var, shape: Mamba2) -> Var:
    """The results of all tokens, filled up to whole chunks."""
    before, trains, rows, per = t.held, t.recipe.trains("D"), shape.chunk, Chunks(shape.chunk)
    rate = t.constant(shape.heads, 4, t.recipe.trains("A_log"))
    step = _step(t, step, shape)
    t.held = (*before, step)
    values = t.cast(values, 4)
    t.held = (*t.held, values)
    into = _repeated(t, into, shape)
    t.held = (*t.held, into)
    out_of = _repeated(t, out_of, shape)
    t.held = (*t.held, out_of)
    filled = _filled(t, values, shape)
    made = (shape.heads * t.recipe.weights,) if trains else ()
    skipped = t.new(rows * shape.width, 4, filled.grad or trains, per=per)
    temp = (filled.scratch(4),) if trains else ()
    t.op(skipped, (filled,), (filled,) if trains else (), temp=temp, weights=made)
    t.held = (*t.held, skipped)
    values = t.by_row(values, t.cast(step, 4))
    decay = _decay(t, t.cast(step, 4), rate, shape)
    t.held = (*t.held, values, decay)
    parts = []
    for part in (values, decay, into, out_of):
        parts.append(_filled(t, part, shape))
        t.held = (*t.held, parts[-1])
    decay = parts.pop(1)
    # Their gradients lie head by head and are copied into rows of tokens.
    values, into, out_of = (t.copied_back(part) for part in parts)
    t.held = (*before, step, skipped, decay, values, into, out_of)
    inside, across = _chunks(t, values, decay, into, out_of, shape)
    total = t.add(inside, across)
    named, t.held = t.held, (*t.held, total)
    laid_out = t.add(total)
    t.held = (*named, laid_out)
    out = t.add(laid_out, skipped)
    t.held = before
    return out


def _step(t: Layer, step: Var, shape: Mamba2) -> Var:
    """``clamp(softplus(dt + dt_bias))``."""
    trains = t.recipe.trains("dt_bias")
    made = (shape.heads * t.recipe.weights,) if trains else ()
    step = t.op(t.like(step, shape.heads, step.item, step.grad or trains), (step,), (), weights=made)
    if t.recipe.autocast:
        step = t.cast(step, 4)
    step = t.map(step, (step,))
    return t.map(step, (step,))


def _decay(t: Layer, step: Var, rate: Var, shape: Mamba2) -> Var:
    """``-exp(A_log) * dt``."""
    made = (shape.heads * t.recipe.weights,) if rate.grad else ()
    saved = (step, rate) if rate.grad else (rate,)
    temp = (step.scratch(4),) if rate.grad else ()
    return t.op(t.like(step, shape.heads, 4, step.grad or rate.grad), (step,), saved, temp=temp, weights=made)


def _repeated(t: Layer, x: Var, shape: Mamba2) -> Var:
    """In fp32 and for every head of a group."""
    x = t.cast(x, 4)
    return t.op(t.like(x, shape.repeated, 4, x.grad), (x,))


def _filled(t: Layer, x: Var, shape: Mamba2) -> Var:
    """A copy with every sequence filled up to whole chunks."""
    return t.op(t.new(shape.chunk * x.width, 4, x.grad, per=Chunks(shape.chunk)), (x,))


def _chunks(t: Layer, values: Var, decay: Var, into: Var, out_of: Var, shape: Mamba2) -> tuple[Var, Var]:
    """What tokens get from others of their chunk, and what they get from the chunks before."""
    rows, per, small = shape.chunk, Chunks(shape.chunk), shape.chunk * shape.heads
    total = t.op(t.like(decay, small, 4, decay.grad), (decay,))
    t.held = (*t.held, total)
    triangle = _triangle(t, decay, shape)
    t.held = (*t.held, triangle)
    # Gradients that are views are not added into one another: the sum is a third tensor.
    scores = _contracted(t, t.copied_back(out_of), into, rows * small)
    t.held = (*t.held, scores)
    weights = t.mul(scores, triangle)
    t.held = (*t.held, weights)
    inside = _contracted(t, weights, t.copied_back(values), rows * shape.width, copies=(False, True))
    inside = t.copied_back(inside)
    t.held = (*t.held, inside)
    decays = t.exp(t.op(t.new(small, 4, total.grad, per=per), (total,)))
    t.name(decays)
    fading = t.by_row(into, decays)
    t.held = (*t.held, fading)
    made = t.copied_back(_contracted(t, values, fading, shape.states))
    t.held = (*t.held, t.new(shape.states, made.item, False, per=sequences))
    entering = _entering(t, made, total, shape)
    t.held = (*t.held, entering)
    across = _contracted(t, out_of, entering, rows * shape.width)
    across = t.copied_back(across)
    t.held = (*t.held, across)
    decays = t.exp(total)
    t.name(decays)
    across = t.by_row(across, decays)
    t.held = (*t.held, across)
    return inside, across


def _triangle(t: Layer, decay: Var, shape: Mamba2) -> Var:
    """``exp(segment_sum(A))``: the decay between every pair of a chunk's tokens, below the diagonal."""
    square, held = shape.chunk**2 * shape.heads, t.held
    spread = t.new(square, 4, decay.grad, per=Chunks(shape.chunk))
    t.op(spread, (decay,), (t.constant(shape.chunk**2, 1),), temp=(spread.scratch(4),))
    t.held = (*held, spread)
    sums = t.op(t.like(spread, square, 4, spread.grad), (spread,), temp=(spread.scratch(2 * 4),))
    masked = t.map(sums, (t.constant(shape.chunk**2, 1),))
    t.held = held
    return t.exp(masked)


def _entering(t: Layer, made: Var, total: Var, shape: Mamba2) -> Var:
    """The state that every chunk starts from: nothing, and those that are made, summed up as they fade."""
    per = Chunks(shape.chunk, more=1)
    joined = t.new(shape.states, made.item, made.grad, per=per)
    t.link(joined, (made,), same=True)
    fading = t.op(t.new(shape.heads, 4, total.grad, per=per), (total,))
    sums = t.copied_back(_contracted(t, fading, joined, shape.states, copies=(False, True)))
    return t.copied_back(sums, per=Chunks(shape.chunk))


def _contracted(t: Layer, a: Var, b: Var, width: int, *, copies: tuple[bool, bool] = (True, True)) -> Var:
    """``torch.einsum`` of two tensors as one batched product, of copies whose rows lie as it needs them: each is made,
    and cast under autocast, before the next one is."""
    before, item = t.held, 2 if t.recipe.autocast else 4
    a = t.cast(t.add(a) if copies[0] else a, item)
    t.name(a)
    b = t.cast(t.add(b) if copies[1] else b, item)
    t.held = before
    return t.bmm(a, b, width)
