"""What kernels keep that stand in for plain torch where their packages are installed: flash-linear-attention's gated
delta rule (0.5.2 ``fla/ops/gated_delta_rule/chunk.py``) and causal-conv1d (``causal_conv1d_interface.py``).

transformers takes each wherever its package can be imported (``use_kernel_func_from_hub_with_fallback``).
"""

from __future__ import annotations

from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.delta_rule import CHUNK, Heads, chunks
from lintfit.memory.activations.tape import Var, once

DELTA_RULE = "gated_delta_rule"
CONVOLUTION = "causal_conv1d"
"""The kernels' names among ``Spec.fused_kernels``."""


def gated_delta_rule(t: Layer, query: Var, key: Var, value: Var, beta: Var, decay: Var, heads: Heads) -> Var:
    """``ChunkGatedDeltaRuleFunction``.

    Keeps queries and keys of unit length with their factors, a copy of the values, the decays summed up, the rates,
    and the inverse of each chunk's system. The backward makes keys, values and the states of all chunks again, and
    has the gradients of these beside them.
    """
    item = query.item
    units = [t.like(x, x.width, item, False) for x in (query, key)]
    factors = [t.like(x, heads.keys, 4, False) for x in (query, key)]
    copied = t.like(value, value.width, item, False)
    summed = t.like(decay, heads.values, 4, False)
    inverse = t.like(value, CHUNK * heads.values, item, False)
    out = t.like(value, value.width, item, True)
    state = heads.values * heads.key_dim * heads.value_dim
    temp = (
        (3 * heads.wide_keys * item, query.per),
        (3 * heads.value_width * item, query.per),
        (2 * state * item, chunks),
    )
    saved = (*units, *factors, copied, summed, beta, inverse)
    return t.op(out, (query, key, value, beta, decay), saved, temp=temp)


def convolution(t: Layer, x: Var, module: str, kernel: int, *, bias: bool) -> Var:
    """``CausalConv1dFn``, SiLU in it: keeps its input and runs it again in the backward."""
    trains, weights = t.recipe.trains(module), x.width * (kernel + bias)
    made = (weights * t.recipe.weights,) if trains else ()
    temp = ((weights * 4, once),) if trains else ()
    return t.op(t.like(x, x.width, x.item, x.grad or trains), (x,), (x,), temp=temp, weights=made)
