"""Load a 16-bit checkpoint in 16 bits."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.fit.axes.forced_float32 import forces_float32
from lintfit.fit.options import Effect, Option, Subject, half


def options(subject: Subject) -> Iterator[Option]:
    """Safe where nothing trains in these weights: a frozen base, or an engine with fp32 master weights of its own."""
    run, spec = subject.run, subject.spec
    setting = run.settings.get("weights_dtype")
    if spec.weights_dtype != "fp32" or forces_float32(run) or (setting is None and "weights_dtype" not in spec.stated):
        return
    if spec.facts.checkpoint_dtype not in ("bf16", "fp16"):
        return
    dtype = half(subject)
    if dtype == "bf16" and spec.mixed_precision != "no":
        dtype = spec.mixed_precision
    if dtype == "fp16" and spec.method == "full" and spec.engine != "deepspeed":
        return  # torch's GradScaler takes no gradients of fp16 ("Attempting to unscale FP16 gradients")
    # LitGPT's precision is that of the adapters, too.
    frozen = spec.method == "lora" and run.recipe is None
    kept = frozen or (spec.engine == "deepspeed" and spec.mixed_precision != "no")
    safe = kept and setting is not None and setting.provenance.kind == "default"
    note = "" if safe else f"the weights are kept in {dtype} instead of fp32"
    changes = {"weights_dtype": dtype}
    if spec.front_end == "litgpt" and spec.mixed_precision != "no":
        changes["mixed_precision"] = "no"  # its bf16-true is without autocast
    effect = Effect.SAME if safe else Effect.NUMERICS if kept else Effect.ROUNDED_UPDATES
    yield Option(f"{dtype} weights", changes, effect, note)
