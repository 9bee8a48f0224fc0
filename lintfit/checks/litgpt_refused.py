from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import anchor
from lintfit.run.model import Run
from lintfit.settings.model import is_count

if TYPE_CHECKING:
    from lintfit.settings.model import Place
    from lintfit.sources.recipes.keys import Stated
    from lintfit.sources.recipes.litgpt import LitGptRecipe


def breaks_the_command(context: RunContext) -> bool:
    return next(iter(check_run(context)), None) is not None


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.recipe is None or run.recipe.dialect != "litgpt":
        return
    recipe = cast("LitGptRecipe", run.recipe)
    yield from _quantizes(run, recipe)
    yield from _too_few_samples(run, recipe)


def _quantizes(run: Run, recipe: LitGptRecipe) -> Iterator[Report]:
    quantize, precision = recipe.keys.found("quantize"), recipe.keys.get("precision")
    if recipe.method != "lora" or not isinstance(quantize.value, str) or not quantize.value.startswith("bnb."):
        return
    stated = precision is not None and precision.value is not None
    asked = precision.value if precision is not None and stated else recipe.keys.default("precision").value
    if isinstance(asked, str) and asked.endswith("-mixed"):
        default = "" if stated else ", LitGPT's default"
        yield Report(
            _place(run, *((precision,) if precision is not None else ()), quantize),
            f"quantize: {quantize.value} with precision {asked}{default}: the run stops with ValueError (Quantization "
            "and mixed precision is not supported)",
            help="write precision: bf16-true",
        )
    gpus = run.settings.get("gpus")
    if gpus is not None and is_count(gpus.value) and gpus.value > 1:
        yield Report(
            _place(run, quantize),
            f"quantize: {quantize.value} on {gpus.value} devices: the run stops with NotImplementedError (Quantization "
            "is currently not supported for multi-GPU training)",
            help="write devices: 1, or take quantize out",
        )


def _too_few_samples(run: Run, recipe: LitGptRecipe) -> Iterator[Report]:
    """``TrainArgs.gradient_accumulation_iters`` asserts that a rank has at least one micro-batch."""
    total, micro = recipe.keys.count("train.global_batch_size"), recipe.keys.count("train.micro_batch_size")
    gpus = run.settings.get("gpus")
    if total is None or micro is None or gpus is None or not is_count(gpus.value):
        return
    if total // gpus.value // micro > 0 or gpus.provenance.kind == "option":
        return
    yield Report(
        _place(run, recipe.keys.found("train.global_batch_size"), recipe.keys.found("train.micro_batch_size")),
        f"a global batch of {total} samples holds no micro-batch of {micro} on each of {gpus.value} "
        f"device{'s' if gpus.value > 1 else ''}: the run stops with AssertionError (gradient_accumulation_iters > 0)",
        help="raise train.global_batch_size, or lower train.micro_batch_size",
    )


def _place(run: Run, *found: Stated) -> Place:
    """Where the first of these keys stands that is written."""
    return next((each.provenance.place for each in found if each.provenance.place is not None), None) or anchor(run)
