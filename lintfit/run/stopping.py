"""Where a run stops with an error, whatever its memory: such a run has no verdict that it fits."""

from __future__ import annotations

from lintfit.frozen import frozen
from lintfit.run.model import Run
from lintfit.settings.model import Place
from lintfit.versions import before

_MAPPED = "4.50"
"""transformers up to 4.49 hands every ``device_map`` to accelerate's ``dispatch_model``, which leaves the map on the
model (``hf_device_map``); of later versions this has not been looked up."""

_OF_BITSANDBYTES = frozenset({"nf4", "nf4-double", "int8"})


@frozen
class Stop:
    """An error that a run ends with: the rule that reports it, the call it comes from, and why there is no verdict."""

    rule: str
    place: Place
    reason: str


def stops(run: Run) -> tuple[Stop, ...]:
    """The errors that a run surely ends with before it has trained to its end."""
    found = (_evaluates_nothing(run), _loads_on_one_gpu(run))
    return tuple(stop for stop in found if stop is not None)


def _evaluates_nothing(run: Run) -> Stop | None:
    call = run.script.evaluates_nothing if run.script is not None else None
    if call is None:
        return None
    why = f"what it evaluates: it is to evaluate as it trains, and the trainer{_at(call.place)} has no eval_dataset"
    return Stop("evaluation-without-data", call.place, f"{why} (state one, or turn evaluation off)")


def _loads_on_one_gpu(run: Run) -> Stop | None:
    """A quantized model that each of several processes loads onto GPU 0.

    accelerate refuses to train it on another GPU (``Accelerator.prepare_model``: "You can't train a model that has been
    loaded in 8-bit precision on a different device than the one you're training on"), if GPU 0 has room for so many.
    """
    ranks = run.settings.get("gpus")
    if run.script is None or ranks is None or ranks.provenance.kind in ("option", "assumed") or run.launch is None:
        return None
    if not isinstance(ranks.value, int) or ranks.value < 2 or run.value("engine") != "ddp":
        return None
    if run.value("quantization") not in _OF_BITSANDBYTES or not before(run.versions.get("transformers"), _MAPPED):
        return None
    call = run.script.loads_on_current_gpu
    if call is None:
        return None
    why = (
        f"how each of its {ranks.value} processes gets a GPU of its own: all load the model{_at(call.place)} onto GPU 0"
    )
    return Stop("quantized-load-on-first-gpu", call.place, f'{why} (device_map={{"": PartialState().process_index}})')


def _at(place: Place) -> str:
    line = place.document.position(place.span.start).line
    return f" at {place.document.path.as_posix()}:{line}"
