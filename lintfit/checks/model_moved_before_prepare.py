"""The rule model-moved-before-prepare: see its page."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.context import Report, RunContext
from lintfit.checks.runs import trap
from lintfit.checks.script_edits import without_call
from lintfit.checks.wording import gib
from lintfit.findings import Applicability, Fix, Related
from lintfit.memory.spec import DTYPE_BYTES
from lintfit.run.model import Run


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or not _shards_parameters(run):
        return
    facts = run.script.facts
    consumer = facts.trainer or facts.initialize
    if consumer is None:
        return
    for move in facts.moves:
        call = move.call
        if call.taken is not True or call.device_guarded or call.order >= consumer.order:
            continue
        yield Report(
            call.place,
            f"the model is moved to the GPU before {consumer.name} shards it: {_cost(run)} on every GPU",
            severity=trap(context),
            related=(Related(consumer.place, "this places the shards itself"),),
            fix=Fix(
                "delete the move: the engine places the model",
                Applicability.SAFE,
                without_call(run.script, call),
                {"loaded_on_gpu": False},
            ),
            help="delete it",
        )


def _shards_parameters(run: Run) -> bool:
    engine = run.value("engine")
    return bool(engine == "fsdp" or (engine == "deepspeed" and run.value("zero_stage") == 3))


def _cost(run: Run) -> str:
    spec = run.spec
    if spec is None:
        return "a whole copy"
    return f"a whole copy of {gib(spec.facts.parameters * DTYPE_BYTES[spec.weights_dtype])}"
