"""Runs whose DeepSpeed or Accelerate config is not among the files: judged for all that it may say.

What the launch line and the script state of model, batch and length holds whatever the file says: a Trainer stops where
a DeepSpeed file states another (transformers 4.57, ``integrations/deepspeed.py:trainer_config_finalize``). The file
decides ZeRO's stage, what is offloaded and the sizes of buckets; the precision that arguments ask for is put in where
it is silent (accelerate 1.15, ``DeepSpeedPlugin.set_mixed_precision``). A name such as ``zero2.json`` or
``deepspeed_stage3.json`` is taken to say the stage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import replace
from lintfit.memory.spec import Spec
from lintfit.run.configs import ACCELERATE, DEEPSPEED
from lintfit.run.model import ANY_OF_THE_CONFIG, BY_NAME_OF_THE_CONFIG, Run
from lintfit.verdict.by_machine import NO_OFFLOAD, STAGES, Stage, configured, least_of, whatever, zero
from lintfit.verdict.model import Judged

_DECIDES = frozenset({"engine", "zero_stage", "offload_optimizer", "offload_param"})
"""What a config says that nothing else does."""
_BUCKETS = 1_000_000_000
"""Elements of the largest buckets, for gradients and for what is gathered. DeepSpeed's default is half as many; those
of public configs are 2e8 and 5e8 (transformers' documentation), rarely 1e9."""
_SIZES = ("reduce_bucket_size", "allgather_bucket_size")
_NAMED = lazy_pattern(r"(?:zero|stage|z)[-_]?([0-3])(?!\d)", re.IGNORECASE)
_HOST: Mapping[str, Any] = {"offload_optimizer": "cpu", "offload_param": "cpu"}


def by_config(run: Run, judge: Callable[[Run], Judged]) -> Judged | None:
    """The verdict of a run that fits, or that does not, whatever the file says that is not there; None for others."""
    known = run.but_for_config
    if known is None or known.spec is None or not known.hardware.gpus or len(run.missing) != 1:
        return None
    what, name, says = run.missing[0].what, run.missing[0].name, ANY_OF_THE_CONFIG
    if what == DEEPSPEED:
        stages = _stages(name)
        least, others = _least(known.spec, stages[-1]), _of_deepspeed(known.spec, stages)
        decides, by_name = _DECIDES, ""
        if len(stages) == 1:
            by_name, says = f" of ZeRO-{stages[0]}, which its name says", BY_NAME_OF_THE_CONFIG
    elif what == ACCELERATE:
        least, others = least_of(known.spec), configured(known.spec)
        decides, by_name = _DECIDES | {"mixed_precision"}, ""
    else:
        return None
    if set(known.doubtful) - decides - {"method"}:
        return None

    def as_one(spec: Spec) -> Run:
        engine = replace(run.settings["engine"], value=spec.engine, provenance=says)
        left = tuple(each for each in known.doubtful if each not in decides)
        return replace(known, spec=spec, settings={**run.settings, "engine": engine}, doubtful=left, unknown=())

    return whatever(judge, as_one(least), map(as_one, others), f"whatever {name}, which was not found, says{by_name}")


def _stages(name: str) -> tuple[Stage, ...]:
    """The stages that a file of this name may ask for."""
    found = set(_NAMED.findall(PurePosixPath(name).name))
    return tuple(stage for stage in STAGES if found == {str(stage)}) or STAGES


def _least(spec: Spec, stage: Stage) -> Spec:
    """The run as the file may make it that needs least: what can be on the host there, whose memory another file may
    leave alone."""
    offload = {name: device if name == "offload_optimizer" or stage == 3 else "none" for name, device in _HOST.items()}
    return zero(replace(spec, host_memory_bytes=None), stage, offload if stage else NO_OFFLOAD)


def _of_deepspeed(spec: Spec, stages: tuple[Stage, ...]) -> Iterator[Spec]:
    """The run as each file makes it that may need most: without offload, with small buckets and large ones."""
    for stage in stages:
        made = zero(spec, stage, NO_OFFLOAD)
        yield made
        section = {"stage": stage, **dict.fromkeys(_SIZES, _BUCKETS)}
        yield replace(made, deepspeed_config={"zero_optimization": section})
