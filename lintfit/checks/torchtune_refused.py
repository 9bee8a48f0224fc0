from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.runs import change, place_of
from lintfit.findings.model import Applicability
from lintfit.run.model import Run
from lintfit.settings.model import is_count
from lintfit.versions import before

if TYPE_CHECKING:
    from lintfit.sources.recipes.torchtune import TorchtuneRecipe


def breaks_the_command(context: RunContext) -> bool:
    return next(iter(check_run(context)), None) is not None


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    if run.recipe is None or run.recipe.dialect != "torchtune" or run.value("trainer") is None:
        return
    recipe = cast("TorchtuneRecipe", run.recipe)
    if recipe.known is None:
        return
    if run.value("weights_dtype") == "fp16":
        yield Report(
            place_of(run, "weights_dtype"),
            f"{recipe.name} does not train in fp16: the run stops with ValueError (Please use bf16 or fp32 instead)",
            help="write dtype: bf16, or fp32",
        )
    yield from _steps_in_backward(run)
    yield from _offloads_without(run, recipe)
    yield from _packs_without_length(recipe)


def _steps_in_backward(run: Run) -> Iterator[Report]:
    """A gradient is gone as soon as its parameter has stepped."""
    if run.value("optimizer_in_backward") is not True:
        return
    steps, norm = run.value("gradient_accumulation_steps"), run.value("max_grad_norm")
    if is_count(steps) and steps > 1:
        yield Report(
            place_of(run, "gradient_accumulation_steps"),
            f"optimizer_in_bwd with {steps} steps of accumulation: the run stops with RuntimeError (Gradient "
            "accumulation is not supported with optimizer in bwd)",
            help="accumulate 1 step, or write optimizer_in_bwd: False",
        )
    if before(run.versions.get("torchtune"), "0.4") is not True and isinstance(norm, (int, float)) and norm > 0:
        yield Report(
            place_of(run, "max_grad_norm"),
            "optimizer_in_bwd with clip_grad_norm: the run stops with RuntimeError (Gradient clipping is not supported "
            "with optimizer in bwd)",
            help="write clip_grad_norm: null, or optimizer_in_bwd: False",
        )


def _offloads_without(run: Run, recipe: TorchtuneRecipe) -> Iterator[Report]:
    checkpointing = recipe.found("enable_activation_checkpointing").value
    if run.value("activation_offload") is not True or checkpointing is not False:
        return
    yield Report(
        place_of(run, "activation_offload"),
        "enable_activation_offloading without enable_activation_checkpointing: the run stops with RuntimeError "
        "(should only be True when enable_activation_checkpointing is True)",
        fix=change(run, "turn on activation checkpointing", Applicability.SAFE, {"gradient_checkpointing": True}),
        help="write enable_activation_checkpointing: True, or enable_activation_offloading: False",
    )


def _packs_without_length(recipe: TorchtuneRecipe) -> Iterator[Report]:
    packed, length = recipe.keys.get("dataset.packed"), recipe.keys.get("tokenizer.max_seq_len")
    place = packed.provenance.place if packed is not None else None
    if packed is None or packed.value is not True or place is None or (length is not None and length.value is not None):
        return
    made = recipe.keys.found("dataset._component_").value
    if not isinstance(made, str) or not made.startswith("torchtune.datasets.") or recipe.keys.missing is not None:
        return
    yield Report(
        place,
        "a packed dataset without tokenizer.max_seq_len: the run stops with ValueError (PackedDataset requires a "
        "max_seq_len to be set on the tokenizer)",
        help="write how long a pack is into tokenizer.max_seq_len",
    )
