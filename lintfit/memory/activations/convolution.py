"""A causal convolution of every channel over a few tokens (``causal_conv1d_fn`` of transformers 5.23)."""

from __future__ import annotations

from lintfit.frozen import frozen
from lintfit.memory.activations import packages
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import CAST, Var


@frozen
class Lengthened:
    """Tokens, and so many more of each sequence that the convolution fills it up with."""

    more: int

    def __call__(self, batch: int, seq: int) -> int:
        return batch * (seq + self.more)


def convolution(
    t: Layer,
    x: Var,
    module: str,
    kernel: int,
    *,
    activated: bool,
    bias: bool = False,
    as_it_is: bool = False,
    lies: bool = False,
) -> Var:
    """The convolution of ``module`` over ``kernel`` tokens, and SiLU behind it where ``activated``.

    In plain torch it saves its input and its longer result, of which a view goes on. CUDA's kernel wants a channel's
    tokens side by side: a copy on either way (``Convolution.cpp``, ``_conv_depthwise2d``). ``as_it_is``: a plain module
    runs it, which casts nothing to the weight's dtype and knows no other kernel. ``lies``: x lies as the
    kernel wants it.
    """
    width, recipe, before = x.width, t.recipe, t.held
    held = before
    trains, item = recipe.trains(module), recipe.weights
    if packages.CONVOLUTION in recipe.kernels and not as_it_is:
        return packages.convolution(t, x, module, kernel, bias=bias)
    full = x if as_it_is else t.cast(x, item)
    saved = []
    if recipe.autocast:
        t.name(full)
        held = t.held
        full = t.cast(full, 2)
        if item == 4:
            saved = [t.constant(width * kernel, 2, trains, CAST)]
    t.held = held if lies else (*held, t.like(full, width, full.item, False))
    out = t.new(width, full.item, full.grad or trains, per=Lengthened(kernel - 1))
    made = (width * kernel * item, *([width * item] if bias else [])) if trains else ()
    t.op(out, (full,), (full, *saved), temp=() if lies else (full.scratch(full.item),), weights=made)
    t.held = (*held, out)
    result = t.copied_back(out, per=x.per)
    result = t.cast(t.map(result, (result,)) if activated else result, x.item)
    t.held = before
    return result
