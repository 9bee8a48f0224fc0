from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import stated_at, trap
from lintfit.checks.helpers.wording import gib
from lintfit.findings.model import Severity


def check_run(context: RunContext) -> Iterator[Report]:
    spec, place = context.run.spec, stated_at(context.run, "whole_state_dict")
    if spec is None or place is None or not spec.saves_on_gpu or spec.data_parallel == 1:
        return
    if spec.fsdp is None or spec.fsdp.strategy == "NO_SHARD":
        return
    yield Report(
        place,
        f"state_dict() of a model that FSDP shards puts a whole copy on every GPU{_cost(context)}",
        severity=_severity(context),
        help="take it within FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, "
        "FullStateDictConfig(offload_to_cpu=True, rank0_only=True)), or by accelerator.get_state_dict(model)",
    )


def _severity(context: RunContext) -> Severity:
    """An error where the run does not fit; a copy that there is room for when the run saves is gone again at once."""
    return Severity.ERROR if trap(context) is Severity.ERROR else Severity.INFO


def _cost(context: RunContext) -> str:
    """What the copy takes, on top of what is there when the run saves."""
    estimate = context.estimate
    saved = next((moment for moment in estimate.moments if moment.phase == "save"), None) if estimate else None
    less = context.what_if(saves_on_gpu=False)
    before = next((moment for moment in less.moments if moment.phase == "save"), None) if less else None
    if saved is None or before is None or saved.allocated <= before.allocated:
        return ""
    return f": {gib(saved.allocated - before.allocated)} as the run saves"
