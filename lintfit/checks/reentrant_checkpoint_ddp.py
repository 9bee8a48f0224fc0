from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.checkpointing import how_known, stated_place, with_reentrant
from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.device_maps import refused_map
from lintfit.checks.helpers.fixes import related
from lintfit.checks.helpers.runs import anchor
from lintfit.checks.helpers.script_calls import calls_of
from lintfit.run.model import Run
from lintfit.settings.model import Place

_SCRIPT = 'gradient_checkpointing_kwargs={"use_reentrant": False}, or ddp_find_unused_parameters=False'
_RECIPE = "--gradient_checkpointing_kwargs '{\"use_reentrant\": false}', or --ddp_find_unused_parameters false"

MAY_STOP = True
DECIDED_BY = ("gradient_checkpointing", "use_reentrant")


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.training is None or run.value("engine") != "ddp" or run.value("gradient_checkpointing") is not True:
        return
    if run.value("use_reentrant") is not True or (run.value("gpus") or 0) < 2:
        return
    if run.launch is None and run.settings["gpus"].provenance.kind == "option":
        return  # that the machine has several GPUs does not say that the script is started on each of them
    if refused_map(run) is not None:
        return  # it stops before any backward, which device-map-auto-distributed reports
    if run.mentions("def gradient_checkpointing_enable"):
        return  # a model of the tree's own says itself how it checkpoints
    known = how_known(run)
    if known not in ("stated", "default") or (known == "default" and run.training.uses_trl):
        return
    cause = _searches(run)
    if cause is None:
        return
    why, place = cause
    yield Report(
        stated_place(run) or anchor(run),
        f"reentrant checkpointing under DDP, and {why}: backward stops with RuntimeError "
        "(Expected to mark a variable ready only once)",
        related=related(place, "DDP is asked for it here"),
        fix=with_reentrant(run, False),
        help="pass " + (_RECIPE if run.recipe is not None else _SCRIPT),
    )


def _searches(run: Run) -> tuple[str, Place | None] | None:
    """Why DDP looks for unused parameters, which it does before the recomputed layers have run."""
    if run.script is None:
        asked = run.training.argument("ddp_find_unused_parameters") if run.training is not None else None
        told = asked is not None and asked.value is True
        return ("ddp_find_unused_parameters is true", asked.provenance.place) if asked is not None and told else None
    facts = run.script.facts
    for call in calls_of(run.script, "DistributedDataParallelKwargs", "DistributedDataParallel", "DDP"):
        flag = call.argument("find_unused_parameters")
        if call.taken is True and flag is not None and flag.value is True and call.argument("static_graph") is None:
            return "find_unused_parameters=True", flag.whole
    if facts.trainer is None or facts.training_arguments is None or facts.training_arguments.spreads:
        return None
    flag = facts.training_arguments.argument("ddp_find_unused_parameters")
    if flag is not None and flag.value is not None:
        return ("ddp_find_unused_parameters=True", flag.place) if flag.value is True else None
    if run.mentions("ddp_find_unused_parameters"):
        return None  # set behind the arguments, in a way that nothing follows
    if any(call.taken is True for call in calls_of(run.script, "get_peft_model")):
        return "the Trainer has DDP look for unused parameters of a PeftModel", None
    return None
