"""What kernels keep that stand in for plain torch where their packages are installed: flash-linear-attention's gated
delta rule (0.5.2 ``fla/ops/gated_delta_rule/chunk.py``), causal-conv1d (``causal_conv1d_interface.py``), mamba-ssm's
whole mixers (``mamba_ssm/ops/triton/ssd_combined.py``, ``selective_scan_interface.py``) and its scan alone. Read in
their autograd functions, measured by nobody here.

transformers takes each wherever its package can be imported (``use_kernel_func_from_hub_with_fallback``).
"""

from __future__ import annotations

from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.delta_rule import CHUNK, Heads, chunks
from lintfit.memory.activations.tape import Chunks, Scratch, Var, once

DELTA_RULE = "gated_delta_rule"
CONVOLUTION = "causal_conv1d"
MAMBA = "mamba_ssm"
"""The kernels' names among ``Spec.fused_kernels``."""

OF_DELTA_RULE = (DELTA_RULE, CONVOLUTION)
OF_MAMBA = (MAMBA, CONVOLUTION)
"""Those that keep less than plain torch, for layers of each kind."""


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


def mamba(t: Layer, projected: Var, widths: tuple[int, int, int], states: Scratch, made: tuple[int, ...]) -> Var:
    """``MambaSplitConv1dScanCombinedFn``: convolution, scan, gated norm and the projection out in one function.

    ``widths``: of the heads together, of what the convolution mixes, of the result. ``states``: bytes of all chunks'
    states in fp32; ``made``: the parameter gradients. Keeps its input and the scan's result; the backward makes
    the rest again, with the states beside their gradients.
    """
    inner, mixed, out = widths
    item = projected.item
    kept = t.like(projected, inner, item, False)
    again = 2 * (inner + mixed) * item
    temp = ((again, projected.per), states, states)
    result = t.like(projected, out, 2 if t.recipe.autocast else item, True)
    return t.op(result, (projected,), (projected, kept), temp=temp, weights=made)


SCANNED = Chunks(2048)
"""Tokens after which Mamba 1's scan keeps its states (``selective_scan.cpp``)."""


def selective_scan(t: Layer, values: Var, step: Var, into: Var, out_of: Var, gate: Var, states: int) -> Var:
    """``SelectiveScanFn``: Mamba 1's scan with its gate, of ``states`` elements a token.

    Keeps what it is given, of what goes into the states and comes out of them copies token by token, the states of
    every chunk with the product of the decays, and the results before the gate.
    """
    into, out_of = t.add(into), t.add(out_of)
    kept = t.like(values, values.width, values.item, False)
    chunk = t.new(2 * states, 4, False, per=SCANNED)
    result = t.like(values, values.width, values.item, True)
    given = (values, step, into, out_of, gate)
    return t.op(result, given, (*given, chunk, kept))


def selective_mixer(t: Layer, projected: Var, selected: int, states: int, out: int, made: tuple[int, ...]) -> Var:
    """``MambaInnerFn``: convolution, scan and projection out of Mamba 1 in one function.

    Keeps its input, the ``selected`` elements of step, input and output of the states, copies of the latter two, the
    states of every chunk and the scan's results. The backward makes the convolution's and the steps again, and has
    their gradients and the results' beside them. ``out``: elements of the result; ``made``: the parameter gradients.
    """
    item, width = projected.item, projected.width // 2
    kept = [t.like(projected, size, item, False) for size in (selected, selected, width)]
    chunk = t.new(2 * states, 4, False, per=SCANNED)
    temp = (((6 * width + selected) * item, projected.per),)
    result = t.like(projected, out, 2 if t.recipe.autocast else item, True)
    return t.op(result, (projected,), (projected, *kept, chunk), temp=temp, weights=made)
