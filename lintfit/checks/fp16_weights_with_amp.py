from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import related
from lintfit.checks.helpers.launched import starts_as_it_is
from lintfit.checks.helpers.readers import milder, older
from lintfit.checks.helpers.runs import anchor, stated_at
from lintfit.checks.helpers.script_calls import calls_of, trained_load
from lintfit.documents.patterns import lazy_pattern
from lintfit.findings.model import Severity
from lintfit.run.model import Run

if TYPE_CHECKING:
    from lintfit.sources.script.source import ScriptSource

_ADAPTERS_CAST, _ADAPTERS_UPCAST = "0.6", "0.12"
"""The releases of peft from which on adapters take the dtype of the weight beside them (``tuners/lora/layer.py``:
``self.to(weight.device, dtype=weight.dtype)``; 0.5 says ``self.to(self.weight.device)``, which leaves them in fp32),
and from which on they are fp32 again (``autocast_adapter_dtype``)."""
_UPCAST = lazy_pattern(r"\bparam\w*|\bp\b")

DECIDED_BY = ("mixed_precision", "weights_dtype")


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.training is None or run.value("engine") not in ("single", "ddp") or not _scales(run):
        return
    if "engine" in run.unseen_flags:
        return
    if run.value("mixed_precision") != "fp16" or run.value("weights_dtype") != "fp16":
        return
    if run.settings.get("quantization") is not None or not _trained_in_fp16(run) or _upcasts(run):
        return
    # A load without a dtype is fp16 in transformers 5 only, where the checkpoint is.
    defaulted = run.settings["weights_dtype"].provenance.kind == "default" and "transformers" not in run.versions
    load = trained_load(run.script) if run.script is not None else None
    worst = milder(Severity.ERROR) if defaulted else Severity.ERROR
    yield Report(
        stated_at(run, "weights_dtype") or (load.place if load is not None else anchor(run)),
        "the trained weights are fp16, and fp16 mixed precision scales their gradients: the first step stops with "
        "ValueError (Attempting to unscale FP16 gradients)",
        severity=worst if starts_as_it_is(run) else Severity.INFO,
        related=related(stated_at(run, "mixed_precision"), "fp16 mixed precision is on here"),
        help="load the model in fp32, or train in bf16"
        if run.script is None
        else "load the model in fp32, or cast what is trained: "
        "for p in model.parameters(): if p.requires_grad: p.data = p.data.float()",
    )


def _scales(run: Run) -> bool:
    """Whether something runs torch's GradScaler: the Trainer, or accelerate's loop with clipping or a scheduler."""
    if run.script is None:
        return run.training is not None and run.training.uses_trainer
    facts = run.script.facts
    return (facts.trainer is not None and facts.trainer.taken is True) or facts.accelerator is not None


def _trained_in_fp16(run: Run) -> bool:
    match run.value("method"):
        case "full":
            return True
        case "lora":
            return run.value("lora_dtype") == "fp16" or _adapters_take_dtype(run)
    return False


def _adapters_take_dtype(run: Run) -> bool:
    """Whether all releases of peft that the project takes make adapters in the dtype of the base."""
    return older((run,), "peft", _ADAPTERS_CAST) is False and older((run,), "peft", _ADAPTERS_UPCAST) is True


_CASTS = ("cast_mixed_precision_params", "prepare_model_for_kbit_training", "prepare_model_for_int8_training")


def _casts_elsewhere(script: ScriptSource) -> bool:
    """Whether all such calls stand in branches that this run does not take."""
    taken = [record.taken for record in script.reading.records if record.name in _CASTS]
    return bool(taken) and all(each is False for each in taken)


def _upcasts(run: Run) -> bool:
    """Whether the script casts parameters one by one, or prepares them in a way that does."""
    if run.script is None:
        return False
    if run.mentions("_upcast") or (run.mentions(*_CASTS) and not _casts_elsewhere(run.script)):
        return True
    casts = calls_of(run.script, "float", "to", "type")
    return any(call.receiver is not None and _UPCAST.match(call.receiver) for call in casts)
