"""Take a cast of the whole model to float32 away."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.fit.options import Effect, Option, Subject, half
from lintfit.run.model import Run

NAME = "no forced float32"


def options(subject: Subject) -> Iterator[Option]:
    """Safe where the engine keeps fp32 master weights of its own."""
    run, spec = subject.run, subject.spec
    if not forces_float32(run):
        return
    safe = spec.engine == "deepspeed" and spec.mixed_precision != "no"
    dtype = _loaded(subject)
    note = "" if safe else f"the weights train in {dtype} instead of fp32"
    yield Option(NAME, {"weights_dtype": dtype}, Effect.SAME if safe else Effect.ROUNDED_UPDATES, note)


def forces_float32(run: Run) -> bool:
    """Whether the script casts the trained model to float32 in this run."""
    return run.script is not None and any(upcast.call.taken is True for upcast in run.script.facts.upcasts)


def _loaded(subject: Subject) -> str:
    """dtype before the upcast: what it overrode, else 16 bits of the kind that the GPUs can do."""
    setting = subject.run.settings.get("weights_dtype")
    for beaten in setting.overrode if setting is not None else ():
        if beaten.value in ("bf16", "fp16"):
            return str(beaten.value)
    return half(subject)
