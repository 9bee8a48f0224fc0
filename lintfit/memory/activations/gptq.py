"""The linear layers of AutoGPTQ as plain torch runs them: each unpacks its whole weight whenever it is called.

Training takes ``qlinear_cuda_old.py``, or ``qlinear_cuda.py`` where the columns were quantised in the order of their
activations (``desc_act``): the CUDA extension has no backward and is for fewer than 128 tokens
(``kernel_switch_threshold``). The product keeps the unpacked weight for the gradient of its input, as that of an
ordinary frozen layer keeps its parameter, only that this one is made anew for each use.
"""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.catalog.quantized import quantization_section
from lintfit.frozen import frozen
from lintfit.memory.activations.tape import CAST, Tape, Var
from lintfit.memory.spec import DTYPE_BYTES, Dtype, Spec
from lintfit.memory.versions import Release, release

AUTO_GPTQ = ("auto-gptq", "auto_gptq")

FOLLOWS_MODEL = (0, 5, 0)
"""The first AutoGPTQ whose scales, and with them the unpacked weights, have the model's dtype; fp16 before."""


@frozen
class Unpacked:
    """How a weight is unpacked: bytes of an element as a shifted integer (int8; int16 for 8 bits) and as it is
    multiplied, whether autocast copies it once more, and whether scales are picked row by row (``desc_act``)."""

    integer: int
    item: int
    copied: bool
    ordered: bool


def unpacked(spec: Spec, dtype: Dtype, autocast: bool) -> Unpacked | None:
    """How AutoGPTQ unpacks the weights of a model of ``dtype``; None where it is not said to run.

    Optimum takes GPTQModel where both are installed (``quantizer.py:select_quant_linear``).
    """
    version = auto_gptq(spec.versions)
    if version is None or not (spec.quantization or "").startswith("gptq"):
        return None
    made: Dtype = dtype if version >= FOLLOWS_MODEL else "fp16"
    integer = 2 if spec.quantization == "gptq-int8" else 1
    ordered = quantization_section(spec.facts.config).get("desc_act") is True
    return Unpacked(integer, DTYPE_BYTES[made], autocast and made != spec.mixed_precision, ordered)


def auto_gptq(versions: Mapping[str, str]) -> Release | None:
    """The version of AutoGPTQ that runs, where one is stated and GPTQModel is not."""
    if "gptqmodel" in versions:
        return None
    return next((found for name in AUTO_GPTQ if (found := release(versions.get(name))) is not None), None)


def product(t: Tape, x: Var, rows: int, columns: int, how: Unpacked, autocast: bool) -> Var:
    """``x @ weight + bias``, in the dtype of ``x``: optimum gives every layer a bias, of zeros where it has none."""
    held = t.held
    t.held = (*held, x)
    weight = _weight(t, rows * columns, how)
    taken = t.cast(x, 2) if autocast else x
    out = t.like(x, x.width // rows * columns, taken.item, x.grad)
    t.op(out, (taken, weight), (weight,) if x.grad else (), parameter=x.grad)
    t.held = held
    return t.add(t.cast(out, x.item))


def _weight(t: Tape, size: int, how: Unpacked) -> Var:
    """Shifted through int32; less the zero points, times the scales."""
    wide = t.op(t.constant(size, 4), ())
    whole = t.op(t.constant(size, how.integer), (wide,))
    scales: tuple[Var, ...] = ()
    if how.ordered:
        scales = (t.op(t.constant(size, how.item), (whole,)),)
        zeros = t.op(t.constant(size, how.integer), (whole, *scales))
        t.held = (*t.held, whole)
        less = t.op(t.constant(size, how.integer), (whole, *scales, zeros))
    else:
        less = t.op(t.constant(size, how.integer), (whole,))
    weight = t.op(t.constant(size, how.item, kind=CAST), (whole, *scales, less))
    if not how.copied:
        return weight
    t.held = (*t.held, weight)
    return t.op(t.constant(size, 2, kind=CAST), (weight,))
