from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import decisive, trap
from lintfit.checks.helpers.script_calls import knows_deepspeed, may_quantize, trained_load
from lintfit.checks.helpers.script_edits import without_argument, without_call
from lintfit.checks.helpers.wording import gib
from lintfit.checks.helpers.zero3_loads import loads_in_parts
from lintfit.findings.model import Applicability, Fix, Related
from lintfit.memory.engines.loading import loaded_bytes
from lintfit.memory.tensors.parameters import inventory
from lintfit.run.loading import on_own_gpu
from lintfit.run.model import Run
from lintfit.sources.script.model import Call


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    engine = run.value("engine")
    if run.script is None or not (engine == "fsdp" or (engine == "deepspeed" and run.value("zero_stage") == 3)):
        return
    facts = run.script.facts
    consumer = facts.trainer or facts.initialize
    if consumer is None:
        return
    if _made_in_parts(run) or _moved_anyway(run):
        return
    yield from _mapped(context, consumer)
    for move in facts.moves:
        call = move.call
        if call.taken is not True or call.device_guarded or call.order >= consumer.order:
            continue
        yield Report(
            call.place,
            f"the model is moved to the GPU before {consumer.name} shards it: {_cost(run)} on every GPU",
            severity=decisive(trap(context), context.what_if(loaded_on_gpu=False)),
            related=(Related(consumer.place, "this places the shards itself"),),
            fix=Fix(
                "delete the move: the engine places the model",
                Applicability.SAFE,
                without_call(run.script, call),
                {"loaded_on_gpu": False},
            ),
            help="delete it",
        )


def _made_in_parts(run: Run) -> bool:
    """Whether ``zero.Init`` has sharded the model as it was loaded, or may have where the model is not known."""
    if loads_in_parts(run):
        return True
    if run.spec is not None:
        return run.spec.made_in_parts
    load = trained_load(run.script) if run.script is not None else None
    if run.script is None or run.value("engine") != "deepspeed":
        return False
    return load is not None and knows_deepspeed(run.script, load) is not False


def _moved_anyway(run: Run) -> bool:
    """Whether DeepSpeed moves the whole model itself, as it does what ``zero.Init`` has not made: a quantized one.

    DeepSpeed ``_configure_distributed_model``, transformers ``get_init_context`` (``is_quantized``).
    """
    return run.value("engine") == "deepspeed" and run.value("quantization") is not None


def _mapped(context: RunContext, consumer: Call) -> Iterator[Report]:
    """``device_map`` of the trained model's load; bitsandbytes puts what it quantises on the GPU anyway."""
    run = context.run
    load = trained_load(run.script) if run.script is not None else None
    if run.script is None or load is None or load.argument("quantization_config") or run.value("quantization"):
        return
    argument = on_own_gpu(load)
    # Where transformers knows of ZeRO-3 it stops, which another rule reports.
    if argument is None or (run.value("engine") == "deepspeed" and knows_deepspeed(run.script, load) is not False):
        return
    yield Report(
        argument.whole,
        f"device_map puts the model on the GPU before {consumer.name} shards it: {_cost(run)}",
        severity=decisive(trap(context), context.what_if(loaded_on_gpu=False)),
        related=(Related(consumer.place, "this places the shards itself"),),
        fix=None
        if may_quantize(load)
        else Fix(
            "drop the argument: the engine places the model",
            Applicability.SAFE,
            without_argument(run.script, load, argument),
            {"loaded_on_gpu": False},
        ),
        help="drop it where the model is not quantized" if may_quantize(load) else "drop it",
    )


def _cost(run: Run) -> str:
    spec = run.spec
    if spec is None:
        return "a whole copy"
    return f"a whole copy of {gib(loaded_bytes(spec, inventory(spec)))}"
