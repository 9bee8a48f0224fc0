from __future__ import annotations

import re
from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.readers import older, only_load
from lintfit.checks.helpers.wording import billions, gib
from lintfit.checks.helpers.zero3_loads import loads_in_parts
from lintfit.findings.model import Severity
from lintfit.memory.result import Verdict
from lintfit.run.loading import CASTS_ALL
from lintfit.run.model import Run

_PREPARES = ("prepare_model_for_kbit_training", "prepare_model_for_int8_training")
_QUANTIZED_NAME = re.compile(r"gptq|awq|aqlm|eetq|hqq|bnb|int[48]|[48]-?bit|nf4|fp8|exl2|quant", re.IGNORECASE)
_OWN_PEFT = re.compile(r"sys\.path\.\w+\([^\n]*peft|def prepare_model_for_(?:kbit|int8)_training\(")
"""A PEFT of the project's own, which may cast something else."""
_ARGUMENTS = ("quantization_config", "load_in_4bit", "load_in_8bit")


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or not run.script.facts.trains or not _unquantized(run):
        return
    if older((run,), "peft", CASTS_ALL) is True or any(_OWN_PEFT.search(each.text) for each in run.documents):
        return
    for call in run.script.facts.checkpointing:
        if call.name not in _PREPARES or call.taken is not True:
            continue
        if run.value("weights_dtype") == "fp32" or _may_be_fp32(run):
            return  # nothing is cast
        keeps, off = _keeps_fp32(run), "" if _checkpoints(run) else "leaves gradient checkpointing off"
        done = ", and ".join(filter(None, (_cost(run) if keeps else "", off)))
        if not done:
            return
        breaks = context.verdict is Verdict.DOES_NOT_FIT
        yield Report(
            call.place,
            f"{call.name} on a model that is not quantized {done}",
            severity=(Severity.ERROR if breaks else Severity.WARNING)
            if keeps and not _is_cheap(run)
            else Severity.INFO,
            help="delete it: get_peft_model freezes the base itself; turn checkpointing on in the trainer's arguments",
        )


def _may_be_fp32(run: Run) -> bool:
    """Whether the model may be loaded in fp32: nobody states a dtype, and transformers 4 may be what is installed,
    whose ``from_pretrained`` takes fp32 then (5 takes the checkpoint's)."""
    stated = run.settings.get("weights_dtype")
    by_file = stated is not None and stated.provenance.kind == "file"
    return not by_file and older((run,), "transformers", "5") is not False


def _is_cheap(run: Run) -> bool:
    """Whether what fp32 takes over 16 bits is less than a GiB."""
    return run.facts is not None and 2 * run.facts.parameters < 2**30


def _keeps_fp32(run: Run) -> bool:
    """Whether the weights stay fp32 as PEFT casts them.

    It casts ``param.data``, which is empty where ZeRO-3 has partitioned the parameter (``zero.Init`` keeps its share as
    ``ds_tensor``); and DeepSpeed casts the whole module to the half precision that is enabled before it goes to the GPU
    (``engine.py:_configure_distributed_model``).
    """
    if run.value("engine") != "deepspeed":
        return True
    return run.value("mixed_precision") not in ("bf16", "fp16") and not loads_in_parts(run)


def _checkpoints(run: Run) -> bool:
    """Whether gradient checkpointing is on, or the script turns it on at some place."""
    calls = run.script.facts.checkpointing if run.script is not None else ()
    turned_on = any(call.name == "gradient_checkpointing_enable" and call.taken is not False for call in calls)
    return turned_on or run.value("gradient_checkpointing") is True


def _unquantized(run: Run) -> bool:
    """Whether the one model that the script loads is certainly not quantized."""
    load = only_load(run)
    if run.script is None or load is None or load.spreads or run.script.facts.quantization_config is not None:
        return False
    if any(name in load.arguments and load.arguments[name].value not in (None, False) for name in _ARGUMENTS):
        return False
    quantization, model = run.settings.get("quantization"), run.settings.get("model")
    if quantization is not None and quantization.value is not None:
        return False
    if model is None or not isinstance(model.value, str) or _QUANTIZED_NAME.search(model.value):
        return False
    return run.facts is None or "quantization_config" not in run.facts.config


def _cost(run: Run) -> str:
    if run.facts is None:
        return "makes every parameter fp32"
    parameters = run.facts.parameters
    return f"makes all {billions(parameters)} parameters fp32 ({gib(4 * parameters)})"
