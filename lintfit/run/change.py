"""What the memory model's input becomes when settings of a run change: the question behind every "what if"."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lintfit.frozen import names, replace
from lintfit.memory.spec import Spec
from lintfit.run.auto import filled
from lintfit.run.engine_location import by_launcher
from lintfit.run.model import Run
from lintfit.settings.registry import EVALUATED, ZERO, ZERO_SECTION
from lintfit.sources.deepspeed import new_config


def changed_spec(spec: Spec, changes: Mapping[str, Any], *, launched: bool = False) -> Spec:
    """The spec with the changes that it has fields for; the DeepSpeed config follows ZeRO's settings.

    A new DeepSpeed has the config of what would be written: the settings of Accelerate's launcher (``launched``, see
    :func:`states_deepspeed`), which leave every buffer at DeepSpeed's default, else a JSON in which the Trainer fills
    them. Weights of another dtype are loaded in it.
    """
    known = {name: value for name, value in changes.items() if name in _SPEC_FIELDS}
    evaluated = {EVALUATED[name]: value for name, value in changes.items() if name in EVALUATED}
    if evaluated and spec.evaluation is not None:
        known["evaluation"] = replace(spec.evaluation, **evaluated)
    if "whole_state_dict" in changes:
        known["saves_on_gpu"] = changes["whole_state_dict"]
    if "weights_dtype" in known:
        known["full_load_dtype"] = None
    buckets = {name: value for name, value in changes.items() if name in ZERO_SECTION}
    if not known.keys().isdisjoint(ZERO) or buckets:
        after = replace(spec, **known)
        config = _config_of(spec, after, launched)
        config["zero_optimization"].update(buckets)
        known["deepspeed_config"] = config
    return replace(spec, **known, stated=spec.stated | frozenset(known))


_SPEC_FIELDS = frozenset(names(Spec))


def states_deepspeed(run: Run) -> bool:
    """Whether Accelerate's launcher, not a DeepSpeed JSON, would state a new DeepSpeed of this run."""
    return run.spec is not None and run.spec.engine != "deepspeed" and by_launcher(run, "deepspeed")


def _config_of(before: Spec, after: Spec, launched: bool) -> dict[str, Any]:
    if before.engine == "deepspeed":
        return _zero_config(after)
    return _launcher_config(after) if launched else _new_config(after)


def _launcher_config(spec: Spec) -> dict[str, Any]:
    """What Accelerate's plugin makes of the keys of its own file: stage and offload, and nothing of the buffers."""
    offload = {name: getattr(spec, name) for name in ("offload_optimizer", "offload_param")}
    devices = {name: {"device": device} for name, device in offload.items() if device != "none"}
    return {"zero_optimization": {**devices, "stage": spec.zero_stage}}


def _zero_config(spec: Spec) -> dict[str, Any]:
    zero = dict(spec.deepspeed_config.get("zero_optimization") or {})
    zero["stage"] = spec.zero_stage
    for key in ("offload_optimizer", "offload_param"):
        block = zero.get(key)
        zero[key] = {**(block if isinstance(block, dict) else {}), "device": getattr(spec, key)}
    return {**spec.deepspeed_config, "zero_optimization": zero}


def _new_config(spec: Spec) -> dict[str, Any]:
    """What DeepSpeed will see of the file that would be written for this spec."""
    zero = {name: getattr(spec, name) for name in ZERO}
    return filled(json.loads(new_config(zero)), spec.facts)
