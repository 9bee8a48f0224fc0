"""xIELU, Apertus' activation with two learnt factors, as transformers writes it in Python (``activations.py``).

The kernel of the package ``xielu`` is another; where that is installed, less is kept.
"""

from __future__ import annotations

from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.tape import CAST, Var


def xielu(t: Layer, x: Var) -> Var:
    """``where(x > 0, a * x * x + b * x, (expm1(min(x, eps)) - x) * c + b * x)``, with a and c learnt.

    Under autocast the factors, and what they meet, are fp32 (softplus, expm1).
    """
    held = t.held
    mask = t.op(t.like(x, x.width, 1, False), (x,))
    t.held = (*held, x, mask)
    first = _by_factor(t, x)
    positive = t.add(t.mul(first, x), t.map(x))
    t.held = (*held, x, mask, positive)
    low = t.map(x, (x,), temp=(x.scratch(1),))
    low = t.cast(low, 4) if t.recipe.autocast else low
    grown = t.expm1(low, temp=(low.scratch(low.item),))
    less = t.op(t.like(x, x.width, max(grown.item, x.item), x.grad), (grown, x))
    negative = t.add(_by_factor(t, less), t.map(x))
    t.held = held
    return t.op(t.like(x, x.width, positive.item, x.grad), (positive, negative), (mask,), temp=(x.scratch(x.item),))


def _by_factor(t: Layer, x: Var) -> Var:
    """x by a learnt number, whose gradient is summed up from a product as large as x."""
    trains = t.recipe.trains("act_fn")
    item = max(x.item, 4 if t.recipe.autocast else t.recipe.weights)
    out = t.like(x, x.width, item, x.grad or trains)
    temp = [x.scratch(item)] if trains else []
    if x.grad and x.item < item:
        temp.append(t.uncast(x, item))
    factor = t.constant(1, item, trains, CAST)
    return t.op(
        out, (x,), (x, factor) if trains else (factor,), temp=temp, weights=(t.recipe.weights,) if trains else ()
    )
