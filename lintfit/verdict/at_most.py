"""Runs that take no less than one of which a part is open: where these fit, it fits, whatever is open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lintfit.frozen import frozen, replace
from lintfit.memory.activations.gptq import AUTO_GPTQ
from lintfit.memory.spec import Spec
from lintfit.run.model import Run

_DEAREST: Mapping[str, tuple[Any, str]] = {
    "attention": ("eager", "attention that writes its scores out (which kernel it is is not known; others keep less)"),
    "gradient_checkpointing": (False, "no layer is recomputed (which of them are is not known; that takes less)"),
    "method": ("full", "the whole model is trained (a part of it is frozen, which takes less)"),
    "quantization": (
        "gptq-int8",
        "weights of eight bits that are unpacked to 16 (how they are quantized is not known; other ways take less)",
    ),
}
"""Of settings that may be open the value that needs most, and what the estimate says of it.

No kernel keeps more than eager attention, whose scores are there for every pair of tokens. Of quantised weights none
has more than eight bits, and none more beside them than a copy in 16 bits, which plain torch's kernels for GPTQ keep
for the backward pass (:func:`lintfit.memory.verdict.headroom._held_weights`).
"""


@frozen(eq=False)
class AtMost:
    """A run that takes no less, and what is said of it."""

    run: Run
    notes: tuple[str, ...]


def at_most(run: Run) -> tuple[AtMost, ...]:
    """The runs of which one takes no less than this one; none where something else is open than can be bounded."""
    spec = run.spec
    if spec is None or not run.doubtful or not set(run.doubtful) <= _DEAREST.keys():
        return ()
    if "method" in run.doubtful and not _may_train_whole(run, spec):
        return ()
    if "quantization" in run.doubtful and spec.method != "lora":
        return ()
    return tuple(_runs(run, spec))


def _runs(run: Run, spec: Spec) -> Iterator[AtMost]:
    values = {name: _DEAREST[name][0] for name in run.doubtful}
    notes = tuple(_DEAREST[name][1] for name in dict.fromkeys(run.doubtful))
    stated = spec.stated | (values.keys() - {"method"})
    versions = {name: version for name, version in spec.versions.items() if name not in AUTO_GPTQ}
    yield AtMost(_with(run, replace(spec, versions=versions, stated=stated, **values)), notes)
    if "quantization" in values:  # they may be no such weights at all
        yield AtMost(_with(run, replace(spec, stated=stated, **{**values, "quantization": None})), notes)


def _with(run: Run, spec: Spec) -> Run:
    return replace(run, spec=spec, doubtful=())


def _may_train_whole(run: Run, spec: Spec) -> bool:
    """Whether a part of the model is frozen, and nobody knows which: all of it takes no less.

    ZeRO 1 and 2 cut what is trained elsewhere then, and a rank has the gradients whole that touch its part: these may
    be more.
    """
    cut = spec.engine == "deepspeed" and spec.zero_stage in (1, 2) and spec.sharding_ranks > 1
    return run.value("partly_frozen") is True and not cut and spec.quantization is None
