from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import stated_at
from lintfit.documents.model import Edit, FileEdit, Span
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.run.model import Run
from lintfit.settings.model import AUTO, Setting
from lintfit.sources.recipes.base import Recipe


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.value("mixed_precision") != "fp16" or run.facts is None or run.facts.checkpoint_dtype != "bf16":
        return
    if run.training is not None and not run.training.trains:
        return
    place = stated_at(run, "mixed_precision")
    if place is None or (run.value("method") == "lora" and run.value("lora_dtype", "fp32") == "fp32"):
        return
    # Without bf16 there is no choice; an unknown GPU may be one of those.
    severity = Severity.WARNING if run.hardware.gpu is not None and run.hardware.gpu.native_bf16 else Severity.INFO
    without = severity is Severity.INFO and run.hardware.gpu is not None
    yield Report(
        place,
        f"{run.facts.name} was trained in bf16, and fp16 is on: activations beyond 65,504 overflow, and {_then(run)}",
        severity=severity,
        fix=_fix(run) if severity is Severity.WARNING else None,
        help="this GPU has no bf16: watch the loss scale, or train adapters in fp32"
        if without
        else "train in bf16 (GPUs of compute capability 8.0 and up)",
    )


def _then(run: Run) -> str:
    """What comes of an overflow: DeepSpeed stops at the smallest scale, torch's GradScaler goes on without a step."""
    if run.value("engine") == "deepspeed":
        return "the loss scale falls until the run stops (DeepSpeed: Current loss scale already at minimum)"
    return "steps are skipped while the loss scale falls"


def _fix(run: Run) -> Fix | None:
    """bf16 in the place of fp16 in every file that says so; None where one of them cannot be changed."""
    edits: list[FileEdit] = []
    for made in (_argument(run), _launcher(run), _config(run)):
        if made is None:
            return None
        edits.extend(made)
    return Fix("train in bf16", Applicability.UNSAFE, tuple(edits), {"mixed_precision": "bf16"}) if edits else None


def _argument(run: Run) -> tuple[FileEdit, ...] | None:
    """``fp16=True`` or ``--fp16 True`` under the other name; ``Accelerator(mixed_precision="fp16")`` as such."""
    if run.recipe is not None:
        return _recipe(run.recipe)
    if run.script is None:
        return ()
    if _says(run.script.settings.get("mixed_precision"), "fp16"):
        return run.script.write("mixed_precision", "bf16")
    if not _says(run.script.settings.get("fp16"), True):
        return ()
    arguments = run.script.facts.training_arguments
    argument = arguments.argument("fp16") if arguments is not None else None
    other = run.script.settings.get("bf16")
    if argument is None or (other is not None and other.provenance.place is not None):
        return None
    start = argument.whole.span.start + (2 if argument.whole.text.startswith("--") else 0)
    document = argument.whole.document
    if document.text[start : start + 4] != "fp16":
        return None
    return (FileEdit(document.path, Edit(Span(start, start + 4), "bf16"), document),)


def _recipe(recipe: Recipe) -> tuple[FileEdit, ...] | None:
    """The front end's own word for the precision, or the switches of ``TrainingArguments``, each of its own."""
    if _says(recipe.settings.get("mixed_precision"), "fp16"):
        return recipe.write("bf16", True)
    if not _says(recipe.settings.get("fp16"), True):
        return ()
    off, on = recipe.write_argument("fp16", False), recipe.write_argument("bf16", True)
    return (*off, *on) if off is not None and on is not None else None


def _launcher(run: Run) -> tuple[FileEdit, ...] | None:
    for source in (run.launch, run.accelerate):
        if source is not None and _says(source.settings.get("mixed_precision"), "fp16"):
            return source.write("mixed_precision", "bf16")
    return ()


def _config(run: Run) -> tuple[FileEdit, ...] | None:
    block = run.deepspeed.settings.get("fp16") if run.deepspeed is not None else None
    if run.deepspeed is None or block is None or block.value is False:
        return ()
    if block.value is AUTO:
        other = run.deepspeed.settings.get("bf16")
        return run.deepspeed.write("bf16", AUTO) if other is None else ()
    return run.deepspeed.write_all({"fp16": False, "bf16": True})


def _says(setting: Setting | None, value: Any) -> bool:
    return setting is not None and setting.value == value
