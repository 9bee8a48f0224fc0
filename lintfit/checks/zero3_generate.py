from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import change, fits, place_of
from lintfit.checks.helpers.script_calls import calls_of, on_trained_model
from lintfit.checks.helpers.wording import gib
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.frozen import replace
from lintfit.memory.result import Verdict
from lintfit.memory.spec import DTYPE_BYTES


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.training is None or run.value("engine") != "deepspeed" or run.value("zero_stage") != 3:
        return
    initialize = run.script.facts.initialize if run.script is not None else None
    if initialize is not None and initialize.name == "initialize":
        yield from _by_hand(context)
    else:
        yield from _gathered(context)


def _by_hand(context: RunContext) -> Iterator[Report]:
    """Without an ``HfDeepSpeedConfig`` transformers does not know that the ranks have to go on together."""
    run = context.run
    assert run.script is not None and run.script.facts.initialize is not None
    if run.mentions("HfDeepSpeedConfig", "HfTrainerDeepSpeedConfig", "synced_gpus", "TrainingArguments"):
        return
    if run.value("gpus") == 1:
        return
    for call in calls_of(run.script, "generate"):
        late = call.order > run.script.facts.initialize.order
        if call.taken is not True or not late or not on_trained_model(run.script, call):
            continue
        yield Report(
            call.place,
            "generate() under ZeRO-3 without synced_gpus=True: a rank that ends its sequences first stops gathering "
            "weights, and the others wait for it for ever",
            fix=Fix(
                "keep the ranks together", Applicability.SAFE, run.script.set_argument(call, "synced_gpus", "True")
            ),
            help="pass synced_gpus=True",
        )


def _gathered(context: RunContext) -> Iterator[Report]:
    """TRL gathers the whole model on every rank to generate, unless it is told not to."""
    run, spec = context.run, context.run.spec
    if spec is None or spec.generation is None or not spec.gathers_to_generate or spec.gpus == 1:
        return
    shard = replace(spec.generation, gather_weights=False)
    saves = context.verdict is Verdict.DOES_NOT_FIT and fits(context.what_if(generation=shard))
    size = gib(spec.facts.parameters * DTYPE_BYTES[spec.weights_dtype])
    said = run.training.spelled("ds3_gather_for_generation", False) if run.training is not None else None
    yield Report(
        place_of(run, "ds3_gather_for_generation", "use_vllm", "zero_stage"),
        f"TRL gathers the whole model on every GPU to generate: {size} beside the training states",
        severity=Severity.ERROR if saves else Severity.INFO,
        fix=change(run, "generate from shards", Applicability.SAFE, {"ds3_gather_for_generation": False})
        if saves
        else None,
        help=f"{said or 'ds3_gather_for_generation=False'} generates from shards and is slower; vLLM is faster",
    )
