"""lintfit against recordings of real parallel ranks: states by phase, and what autograd saves.

A recording holds cases; a case is lintfit's own ``spec`` (as ``estimate --spec`` takes it, without the model), and for
each rank the bytes by phase and kind, and what it saved for one decoder layer and for the logits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from bench.recordings import Row, kinds_table
from lintfit.memory.engines.model_states import states
from lintfit.memory.reading.parse import spec_from_mapping
from lintfit.memory.recording import record
from lintfit.memory.result import Components
from lintfit.memory.rollouts.ppo import gathered_bytes
from lintfit.memory.rollouts.reference import beside_bytes, reference_gathered
from lintfit.memory.spec import Spec

STATES: Mapping[str, tuple[str, ...]] = {
    "parameters": ("parameters",),
    "master_weights": ("master_weights",),
    "optimizer_states": ("optimizer_states",),
    "gradients": ("gradients", "fp32_gradients"),
}
KINDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "saved": {name: (name,) for name in ("layer", "logits")},
    "stage": {name: (name,) for name in ("in_flight", "exchange")},
    "accumulated": {"gradients": ("gradients",)},
    "models": {name: (name,) for name in ("trained", "beside", "gathered")},
    "reference": {name: (name,) for name in ("lasting", "running")},
}
"""What is compared, by phase; the model states in all others."""


def spec_of(recording: Mapping[str, Any], case: Mapping[str, Any]) -> Spec:
    """The recorded case as lintfit's spec."""
    model = {**recording["model"], **case.get("model", {})}
    versions = {**recording["versions"], **case["spec"].get("versions", {})}
    spec = spec_from_mapping({**case["spec"], "model_config": model, "versions": versions})
    return replace(spec, pipeline_stage=case.get("stage"), zero3_init=case.get("zero3_init", True))


def rows(recording: Mapping[str, Any]) -> Iterator[Row]:
    """Every figure of a recording beside lintfit's, of the rank that has most."""
    for case in recording["cases"]:
        spec = spec_of(recording, case)
        for phase in case["ranks"][0]:
            ranks = [rank[phase] for rank in case["ranks"]]
            counted = _counted(spec, phase)
            for kind, parts in KINDS.get(phase, STATES).items():
                recorded = max(sum(rank.get(part, 0) for part in parts) for rank in ranks)
                if any(part in rank for rank in ranks for part in parts):
                    yield case["name"], phase, kind, recorded, counted.get(kind, 0)


def _counted(spec: Spec, phase: str) -> Components:
    match phase:
        case "saved":
            return _saved(spec)
        case "stage":
            return _stage(spec)
        case "models":
            return _models(spec)
        case "reference":
            return reference_gathered(spec)._asdict()
        case "accumulated":
            return states(spec).forward
        case _:
            return _lasting(spec, phase)


def _lasting(spec: Spec, phase: str) -> Components:
    """What lasts beyond a phase: a recording sees nothing that comes and goes inside it."""
    held = states(spec)
    parts = {"initialize": held.forward, "backward": held.reduced, "step": held.save}[phase]
    return {kind: size for kind, size in parts.items() if kind != "temporaries"}


def _saved(spec: Spec) -> Components:
    """Bytes that autograd saves: in the middle layer, and of logits."""
    step = record(spec, states(spec))
    return {"layer": step.layers[len(step.layers) // 2].saved.total, "logits": step.head.saved.logits}


def _stage(spec: Spec) -> Components:
    """Bytes that autograd holds for a pipeline's stage over all micro-batches in flight, and what it receives in."""
    step = record(spec, states(spec))
    each = sum(layer.saved.total for layer in step.layers) + step.front - step.exchanged + step.inputs
    return {"in_flight": step.in_flight * each + step.head.saved.total, "exchange": step.exchanged}


def _models(spec: Spec) -> Components:
    """Bytes of what is trained, of the models beside it, and of what PPO gathers to generate."""
    trained = states(spec).save["parameters"]
    return {"trained": trained, "beside": beside_bytes(spec), "gathered": gathered_bytes(spec)}


def table(recording: Mapping[str, Any]) -> str:
    """A Markdown table of all rows with the difference in per cent."""
    return kinds_table(rows(recording), "measured")
