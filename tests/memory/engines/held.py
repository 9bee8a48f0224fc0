"""Model states of runs as several tests ask for them."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.engines.states import States
from lintfit.memory.result import Components
from lintfit.memory.spec import GIB, Spec

MOMENTS = (
    "load",
    "initialize",
    "forward",
    "backward_start",
    "first_gradient",
    "backward_end",
    "reduced",
    "step",
    "evaluate",
    "save",
)


def moment(held: States, name: str) -> Components:
    found: Components = getattr(held, name)
    return found


def zero(facts: ModelFacts, stage: int, gpus: int, **more: object) -> Spec:
    settings: dict[str, object] = {"engine": "deepspeed", "zero_stage": stage, "gpus": gpus, "mixed_precision": "bf16"}
    return Spec(facts, **(settings | more))  # type: ignore[arg-type]


def model_states(held: States) -> float:
    """GiB of weights, gradients, masters and optimizer states between backward and step."""
    kinds = ("parameters", "gradients", "master_weights", "optimizer_states")
    return sum(held.reduced.get(kind, 0) for kind in kinds) / GIB
