"""From a spec to the model states that its engine makes: what :class:`~lintfit.memory.states.States` holds."""

from __future__ import annotations

from dataclasses import fields, replace
from operator import attrgetter

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.memo import Memo
from lintfit.memory.parameters import inventory
from lintfit.memory.spec import Spec
from lintfit.memory.states import States
from lintfit.memory.zero_config import not_modelled, zero_config

_MAPPINGS = ("deepspeed_config", "versions")
_MODELS = ("facts", "gpu", "reward_model", "value_model")
_IMAGES = ("images", "image_patches", "image_tiles")
_WITHOUT = frozenset({"micro_batch_size", "seq_len", "stated", *_IMAGES, *_MAPPINGS, *_MODELS})
_settings = attrgetter(*(field.name for field in fields(Spec) if field.name not in _WITHOUT))
_FOUND: Memo[tuple[tuple[ModelFacts | None, ...], States]] = Memo()
"""With the models that PPO has besides, whose identities are in the key."""


def states(spec: Spec) -> States:
    """What one rank of a run holds at each moment, without activations, logits and framework (bytes).

    Counted once for runs that differ in their batch and its lengths only.
    """
    beside = spec.reward_model, spec.value_model
    key = (
        *map(id, beside),
        *_settings(spec),
        repr(spec.deepspeed_config) if spec.deepspeed_config else "",
        tuple(spec.versions.items()),
    )
    return _FOUND.get(spec.facts, key, lambda: (beside, _counted(spec)))[1]


def _counted(spec: Spec) -> States:
    held = _of_engine(spec)
    assumed, missing = _assumptions(spec), _not_modelled(spec)
    if not assumed and not missing:
        return held
    return replace(held, assumptions=(*held.assumptions, *assumed), not_modelled=(*held.not_modelled, *missing))


def _of_engine(spec: Spec) -> States:
    match spec.engine:
        case "deepspeed":
            return _deepspeed(spec)
        case "fsdp":
            from lintfit.memory.fsdp import fsdp

            return fsdp(spec)
        case "single" | "ddp":
            from lintfit.memory.unsharded import unsharded

            return unsharded(spec)


def _deepspeed(spec: Spec) -> States:
    """DeepSpeed's states by stage.

    The engine casts the whole module to the enabled precision and keeps fp32 masters and fp32 optimizer states
    (stage 0 without an enabled precision keeps what it is given).
    """
    config = zero_config(spec)
    held = inventory(spec)
    match config.stage:
        case 0:
            from lintfit.memory.zero0 import zero0

            return zero0(spec, held)
        case 1 | 2:
            from lintfit.memory.zero12 import zero12

            return zero12(spec, config, held)
        case _:
            from lintfit.memory.zero3 import zero3

            return zero3(spec, config, held)


def _assumptions(spec: Spec) -> tuple[str, ...]:
    if spec.engine == "fsdp":
        return (
            "FSDP wraps every decoder layer as one unit",
            "one rank a node reads the checkpoint (cpu_ram_efficient_loading)",
        )
    if spec.engine == "ddp" and spec.data_parallel > 1:
        return ("gradient_as_bucket_view is off (the default): gradients are there twice",)
    return ()


def _not_modelled(spec: Spec) -> tuple[str, ...]:
    return not_modelled(spec) if spec.engine == "deepspeed" else ()
