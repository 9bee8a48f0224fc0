"""A run with other settings than its files state: the spec's keys that somebody asks about, and what hangs on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lintfit.errors import LintfitError
from lintfit.frozen import names, replace
from lintfit.memory.micro_batch.vision.images import with_room
from lintfit.memory.reading.contradictions import SpecError, consistent
from lintfit.memory.reading.keys import NULLABLE, READERS, unknown
from lintfit.memory.reading.named import frozen_models, other_model
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.lora import without_module
from lintfit.run.change import changed_spec, states_deepspeed
from lintfit.run.model import Run
from lintfit.settings.registry import ZERO, default
from lintfit.settings.values import Fsdp

_ENGINES: Mapping[str, Mapping[str, Any]] = {
    "deepspeed": {"fsdp": None, "gradient_as_bucket_view": False},
    "fsdp": {"zero_stage": 0, "offload_optimizer": "none", "offload_param": "none", "gradient_as_bucket_view": False},
    "ddp": {"zero_stage": 0, "offload_optimizer": "none", "offload_param": "none", "fsdp": None},
    "single": {"zero_stage": 0, "offload_optimizer": "none", "offload_param": "none", "fsdp": None},
}
"""What is no longer there under another engine."""


def asked(run: Run, stated: Mapping[str, Any]) -> Run:
    """The run with these keys of a spec changed, and what follows from them; one without a spec as it is.

    What is stated is no longer open. Raises LintfitError for a value that is not allowed, or that contradicts the rest
    of the run.
    """
    if run.spec is None or not stated:
        return run
    changes = with_room(run.spec, _implied(read(stated), run.spec))
    spec = changed_spec(run.spec, changes, launched=states_deepspeed(run))
    try:
        consistent({name: getattr(spec, name) for name in names(Spec)}, spec.facts)
    except SpecError as error:
        raise LintfitError(f"{run.id}: {error}") from None
    no_module = without_module(spec) if "lora_targets" in stated else ""
    if no_module:
        raise LintfitError(f"lora_targets: {no_module}")
    return replace(
        run,
        spec=spec,
        hardware=replace(run.hardware, gpus=spec.gpus) if "gpus" in changes else run.hardware,
        doubtful=tuple(name for name in run.doubtful if name not in changes),
        older=lambda: tuple(replace(older, run=asked(older.run, stated)) for older in run.older()),
    )


def read(stated: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a spec's keys as its fields have them. Raises :class:`SpecError`."""
    found: dict[str, Any] = {}
    for key, value in stated.items():
        if key in ("reward_model", "value_model"):
            found[key] = other_model(key, value)
        elif key == "frozen_models":
            found[key] = frozen_models(key, value)
        elif key not in READERS:
            raise unknown(key)
        elif value is not None or key in NULLABLE:
            found[key] = READERS[key](key, value)
    return found


def _implied(changes: dict[str, Any], spec: Spec) -> Mapping[str, Any]:
    """The changes with those that they bring: an engine for ZeRO's stage, a method for adapters, and what ends."""
    lora = any(name.startswith("lora_") for name in changes) or changes.get("quantization")
    if lora and "method" not in changes:
        changes["method"] = "lora"
    if changes.get("method") == "lora" and spec.method == "full":
        fields = {"lora_rank": default("lora_rank"), "lora_targets": "all-linear"}  # no model is without such
        reference = {} if "reference_model" in spec.stated else {"reference_model": False}
        changes = {**fields, **reference, **changes}
    elif changes.get("method") == "full" and spec.quantization is not None:
        changes.setdefault("quantization", None)
    if changes.get("zero_stage") or any(changes.get(name, "none") != "none" for name in ZERO[1:]):
        changes.setdefault("engine", "deepspeed")
        if not spec.zero_stage:  # what DeepSpeed asks for to offload
            changes.setdefault("zero_stage", 3 if changes.get("offload_param", "none") != "none" else 2)
    elif changes.get("fsdp") is not None:
        changes.setdefault("engine", "fsdp")
    if changes.get("gpus", 1) > 1 and spec.engine == "single":
        changes.setdefault("engine", "ddp")
    engine = changes.get("engine", spec.engine)
    if engine == spec.engine:
        return changes
    given = {"fsdp": Fsdp()} if engine == "fsdp" else {}
    return {**_ENGINES[engine], **given, **changes}
