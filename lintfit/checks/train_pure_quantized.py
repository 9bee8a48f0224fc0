"""The rule train-pure-quantized: see its page."""

from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import place_of
from lintfit.findings.model import Related

_ADAPTERS = ("add_adapter", "load_adapter", "get_peft_model", "PeftModel", "inject_adapter_in_model", "get_peft_config")


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.script is None or run.value("quantization") not in ("nf4", "nf4-double", "int8"):
        return
    facts, trainer = run.script.facts, run.script.facts.trainer
    if run.value("method") != "full" or facts.peft_config is not None or trainer is None or trainer.taken is not True:
        return
    if not trainer.function.startswith(("transformers.", "trl.")) or trainer.spreads:
        return
    handed = trainer.argument("peft_config")
    if (handed is not None and handed.value is not None) or run.script.calls(*_ADAPTERS) or not _one_load(context):
        return
    yield Report(
        place_of(run, "quantization"),
        f"{'an 8' if run.value('quantization') == 'int8' else 'a 4'}-bit model without adapters cannot be trained: "
        "the Trainer stops with ValueError "
        "(You cannot perform fine-tuning on purely quantized models)",
        related=(Related(trainer.place, "it is trained here"),),
        help="add LoRA adapters (peft_config, get_peft_model), or load the model unquantized",
    )


def _one_load(context: RunContext) -> bool:
    assert context.run.script is not None
    loads = [load for load in context.run.script.facts.loads if load.taken is not False]
    return len(loads) == 1 and loads[0].taken is True
