"""From a spec to the model states that its engine makes: what :class:`~lintfit.memory.engines.states.States` holds."""

from __future__ import annotations

from lintfit.frozen import replace
from lintfit.memo import Memo
from lintfit.memory.alike import alike, on_any_gpu
from lintfit.memory.engines.ddp import reduces
from lintfit.memory.engines.host import reads_once
from lintfit.memory.engines.saving import gathered_on_host
from lintfit.memory.engines.states import States
from lintfit.memory.engines.zero_config import not_modelled, zero_config
from lintfit.memory.spec import Spec
from lintfit.memory.tensors.parameters import inventory

_FOUND: Memo[States] = Memo()
_EQUAL: Memo[list[States]] = Memo()
"""Those that runs on some GPU have: few engines ask how large it is, so that most of them are equal."""


def states(spec: Spec) -> States:
    """What one rank of a run holds at each moment, without activations, logits and framework (bytes).

    Counted once for runs that differ in their batch and its lengths only.
    """
    return _FOUND.get(alike(spec), "", lambda: _one(spec, _counted(spec)))


def _one(spec: Spec, found: States) -> States:
    """One object for equal states of runs that differ in their GPU: what is made of them is found again by it."""
    known = _EQUAL.get(on_any_gpu(spec), "", list)
    same = next((each for each in known if each == found), None)
    if same is None:
        known.append(found)
    return same or found


def _counted(spec: Spec) -> States:
    held = _of_engine(spec) if spec.saves else replace(_of_engine(spec), save={})
    gathered = gathered_on_host(spec, inventory(spec)) if spec.saves and spec.data_parallel > 1 else 0
    if gathered:
        held = replace(held, host=replace(held.host, save=gathered))
    if spec.merges:
        from lintfit.memory.engines import merging

        merged = replace(held.host, merge=merging.on_host(spec))
        held = replace(held, host=merged, assumptions=(*held.assumptions, merging.said(spec)))
    if spec.resumes:
        from lintfit.memory.engines import resuming

        host = replace(held.host, resume=resuming.on_host(spec))
        said = (*held.assumptions, *resuming.said(spec, held))
        held = replace(held, resume=resuming.on_gpu(spec, held), host=host, assumptions=said)
    assumed, missing = _assumptions(spec), _not_modelled(spec)
    if not assumed and not missing:
        return held
    return replace(held, assumptions=(*held.assumptions, *assumed), not_modelled=(*held.not_modelled, *missing))


def _of_engine(spec: Spec) -> States:
    match spec.engine:
        case "deepspeed":
            return _deepspeed(spec)
        case "fsdp":
            from lintfit.memory.engines.fsdp import fsdp

            return fsdp(spec)
        case "single" | "ddp":
            from lintfit.memory.engines.unsharded import unsharded

            return unsharded(spec)


def _deepspeed(spec: Spec) -> States:
    """DeepSpeed's states by stage.

    The engine casts the whole module to the enabled precision and keeps fp32 masters and fp32 optimizer states
    (stage 0 without an enabled precision keeps what it is given).
    """
    config = zero_config(spec)
    held = inventory(spec)
    match config.stage:
        case 0 | 1 | 2:
            from lintfit.memory.engines.zero0 import zero0
            from lintfit.memory.engines.zero12 import bf16_optimizer, zero12

            alone = config.stage == 0 and not bf16_optimizer(spec, config)
            return zero0(spec, held) if alone else zero12(spec, config, held)
        case _:
            from lintfit.memory.engines.zero3 import zero3

            return zero3(spec, config, held)


def _assumptions(spec: Spec) -> tuple[str, ...]:
    if spec.engine == "fsdp":
        wraps = "FSDP wraps every decoder layer as one unit"
        reads = "one rank a node reads the checkpoint (cpu_ram_efficient_loading)"
        return (wraps, reads) if reads_once(spec) else (wraps,)
    if spec.engine == "deepspeed" and spec.zero_stage == 3 and spec.zero3_init and zero_config(spec).mics:
        return ("the model is made under deepspeed.zero.MiCS_Init (zero.Init dies of mics_shard_size)",)
    if reduces(spec) and "gradient_as_bucket_view" not in spec.stated:
        return ("gradient_as_bucket_view is off (the default): gradients are there twice",)
    return ()


def _not_modelled(spec: Spec) -> tuple[str, ...]:
    return not_modelled(spec) if spec.engine == "deepspeed" else ()
