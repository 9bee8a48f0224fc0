from __future__ import annotations

from collections.abc import Iterator

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.readers import older, one_load
from lintfit.checks.helpers.runs import anchor, place_of
from lintfit.findings.model import Related
from lintfit.run.model import Run
from lintfit.settings.model import Place

_ADAPTERS = ("add_adapter", "load_adapter", "get_peft_model", "PeftModel", "inject_adapter_in_model", "get_peft_config")

_REFUSES = "4.34"
"""The first transformers whose ``Trainer.__init__`` raises; up to 4.33 it logs that such a model can be trained."""

OF_LAUNCHES = True
DECIDED_BY = ("quantization", "method")


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.value("quantization") not in ("nf4", "nf4-double", "int8") or run.value("method") != "full":
        return
    if run.facts is None:
        return  # a folder may hold saved adapters, which are loaded with the model they are for
    place = _trained_at(run)
    if place is None or older((run,), "transformers", _REFUSES) is True:
        return
    yield Report(
        place_of(run, "quantization"),
        f"{'an 8' if run.value('quantization') == 'int8' else 'a 4'}-bit model without adapters cannot be trained: "
        "the Trainer stops with ValueError "
        "(You cannot perform fine-tuning on purely quantized models)",
        related=(Related(place, "it is trained here"),) if run.recipe is None else (),
        help=f"add LoRA adapters ({'--use_peft' if run.recipe is not None else 'peft_config, get_peft_model'}), "
        "or load the model unquantized",
    )


def _trained_at(run: Run) -> Place | None:
    """Where a Trainer surely trains the one model that is loaded, without adapters."""
    if run.script is None:
        return anchor(run) if run.training is not None and run.training.uses_trainer else None
    facts, trainer = run.script.facts, run.script.facts.trainer
    if facts.peft_config is not None or trainer is None or trainer.taken is not True or trainer.spreads:
        return None
    handed = trainer.argument("peft_config")
    if not trainer.function.startswith(("transformers.", "trl.")) or (handed is not None and handed.value is not None):
        return None
    load = one_load(run)
    return trainer.place if not run.script.calls(*_ADAPTERS) and load is not None and load.taken else None
