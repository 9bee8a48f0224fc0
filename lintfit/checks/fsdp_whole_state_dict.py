"""The rule fsdp-whole-state-dict: see its page."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import trap
from lintfit.checks.helpers.wording import gib
from lintfit.memory.spec import Spec


def check_run(context: RunContext) -> Iterator[Report]:
    spec = context.run.spec
    taken = context.run.settings.get("whole_state_dict")
    place = taken.provenance.place if taken is not None else None
    if spec is None or place is None or not spec.saves_on_gpu or not _shards(spec):
        return
    yield Report(
        place,
        f"state_dict() of a model that FSDP shards puts a whole copy on every GPU{_cost(context, spec)}",
        severity=trap(context),
        help="take it within FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, "
        "FullStateDictConfig(offload_to_cpu=True, rank0_only=True)), or by accelerator.get_state_dict(model)",
    )


def _shards(spec: Spec) -> bool:
    return spec.data_parallel > 1 and spec.fsdp is not None and spec.fsdp.strategy != "NO_SHARD"


def _cost(context: RunContext, spec: Spec) -> str:
    """What the copy takes, on top of what is there when the run saves."""
    estimate = context.estimate
    saved = next((moment for moment in estimate.moments if moment.phase == "save"), None) if estimate else None
    less = context.what_if(saves_on_gpu=False)
    before = next((moment for moment in less.moments if moment.phase == "save"), None) if less else None
    if saved is None or before is None or saved.allocated <= before.allocated:
        return ""
    return f": {gib(saved.allocated - before.allocated)} as the run saves"
