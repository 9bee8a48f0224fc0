"""Smaller buffers of ZeRO: buckets, what is fetched ahead and kept alive, and the groups of the optimizer step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lintfit.fit.axes.sharding import can_shard
from lintfit.fit.options import Option, Subject
from lintfit.memory.engines.zero_config import ZeroConfig, zero_config
from lintfit.run.engine_location import has_trainer, zero_in_launcher_file
from lintfit.run.model import Run

REDUCE: Mapping[str, int] = {"reduce_bucket_size": 50_000_000}
GATHER: Mapping[str, int] = {
    **REDUCE,
    "stage3_prefetch_bucket_size": 10_000_000,
    "stage3_param_persistence_threshold": 100_000,
    "stage3_max_live_parameters": 100_000_000,
    "stage3_max_reuse_distance": 100_000_000,
    "sub_group_size": 100_000_000,
}
"""Elements: a tenth of DeepSpeed's defaults and a fifth of its prefetch bucket; ZeRO-3's paper runs use less."""

NAMES = frozenset(GATHER)
_WORTH = 2
"""A value below this many times the smaller one stays."""


def options(subject: Subject) -> Iterator[Option]:
    """One alternative for stages 1 and 2 and one for stage 3; ``space.consistent`` takes the one that counts.

    Each key is a change, for nobody has a reason for these numbers but this one. An Accelerate YAML has no keys for
    them: a DeepSpeed JSON then takes the place of its ZeRO, and what a key of the YAML does comes first.
    """
    run, spec = subject.run, subject.spec
    by_file = zero_in_launcher_file(run) and can_shard(subject) and not _accumulates_by_file(run)
    in_dict = run.script is not None and run.script.zero_in_dict
    by_json = spec.engine == "deepspeed" and (run.deepspeed is not None or not run.documents or in_dict)
    if not by_file and not by_json:
        return
    current = sizes(zero_config(spec))
    for name, wanted in (("smaller reduce buckets", REDUCE), ("smaller ZeRO-3 buffers", GATHER)):
        changes = {key: size for key, size in wanted.items() if current[key] >= _WORTH * size}
        if changes and (wanted is GATHER or spec.zero_stage != 3):
            yield Option(name, changes, counts=len(changes), splits=not by_json)


def _accumulates_by_file(run: Run) -> bool:
    """Whether an Accelerate YAML alone says how many steps a loop of the script's own accumulates.

    From a JSON the loop gets to know it only once it is prepared (``Accelerator._prepare_deepspeed``, accelerate 1.15),
    which is too late for what it has worked out from it by then, and in older releases not at all.
    """
    name = "gradient_accumulation_steps"
    stated = run.accelerate.settings.get(name) if run.accelerate is not None else None
    own = run.script.settings.get(name) if run.script is not None else None
    return stated is not None and not has_trainer(run) and (own is None or own.value != stated.value)


def sizes(config: ZeroConfig) -> dict[str, int]:
    """The sizes that count for a run, defaults included, by the JSON's keys."""
    return {
        "reduce_bucket_size": config.reduce_bucket,
        "stage3_prefetch_bucket_size": config.prefetch_bucket,
        "stage3_param_persistence_threshold": config.persistence_threshold,
        "stage3_max_live_parameters": config.max_live,
        "stage3_max_reuse_distance": config.max_reuse_distance,
        "sub_group_size": config.sub_group,
    }
