from __future__ import annotations

from collections.abc import Iterator

from lintfit.catalog.quantized import by_name
from lintfit.checks.helpers.axolotl import fix, place, recipe_of
from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.wording import gib
from lintfit.findings.model import Applicability, Severity
from lintfit.run.model import Run
from lintfit.sources.recipes.axolotl import AxolotlRecipe
from lintfit.sources.recipes.axolotl_settings import hands_bits_on

_NO_ADAPTER = "load_in_8bit and load_in_4bit are not supported without setting an adapter for training."
_NOT_FOUR = "Require cfg.load_in_4bit to be True for qlora"
_EIGHT = "Can't load qlora in 8bit"
_STORED = "Can't load qlora if gptq"


def check_run(context: RunContext) -> Iterator[Report]:
    recipe = recipe_of(context.run)
    if recipe is None:
        return
    adapter, four, eight = (recipe.config.get(key) for key in ("adapter", "load_in_4bit", "load_in_8bit"))
    if not all(each.value in (True, False, None) for each in (four, eight)):
        return
    bits = "load_in_4bit" if four.value else "load_in_8bit"
    if not adapter.value and (four.value or eight.value):
        yield Report(
            place(context, recipe.config.get(bits)),
            f"{bits} without an adapter: axolotl stops with “{_NO_ADAPTER}”",
            help="adapter: qlora with load_in_4bit, adapter: lora with load_in_8bit; or take it out",
        )
    elif adapter.value == "qlora":
        yield from _of_qlora(context, recipe)
    elif adapter.value == "lora" and four.value and not eight.value and not _stored(context.run, recipe):
        if hands_bits_on(recipe.config):
            return
        yield _unquantized(context, recipe)


def _of_qlora(context: RunContext, recipe: AxolotlRecipe) -> Iterator[Report]:
    """What ``validate_qlora`` refuses, in its order."""
    adapter, four, eight = (recipe.config.get(key) for key in ("adapter", "load_in_4bit", "load_in_8bit"))
    in_four = recipe.write_key("load_in_4bit", True)
    if eight.value:
        yield Report(
            place(context, eight, adapter),
            f"adapter: qlora with load_in_8bit: axolotl stops with “{_EIGHT}”",
            fix=fix("load in four bits", Applicability.SAFE, recipe.write_key("load_in_8bit", False), in_four)
            if four.value
            else None,
            help="load_in_8bit: false and load_in_4bit: true, or adapter: lora",
        )
    elif recipe.config.get("gptq").value is True:
        yield Report(
            place(context, recipe.config.get("gptq"), adapter),
            f"adapter: qlora with gptq: axolotl stops with “{_STORED}”",
            help="adapter: lora, which trains on the weights as they are stored",
        )
    elif not four.value:
        yield Report(
            place(context, adapter),
            f"adapter: qlora without load_in_4bit: axolotl stops with “{_NOT_FOUR}”",
            fix=fix("add load_in_4bit: true", Applicability.SAFE, in_four),
            help="load_in_4bit: true",
        )


def _stored(run: Run, recipe: AxolotlRecipe) -> bool:
    """Whether the checkpoint is quantized as it is stored."""
    model = recipe.config.get("base_model").value
    named = not isinstance(model, str) or by_name(model) is not None
    return named or (run.facts is not None and "quantization_config" in run.facts.config)


def _unquantized(context: RunContext, recipe: AxolotlRecipe) -> Report:
    """No fix of its own: where it does not fit, the plan may have done something else about it."""
    facts = context.run.facts
    weights = context.run.value("weights_dtype")
    size = 4 if weights == "fp32" else 2
    takes = f", {gib(size * facts.parameters)} of weights" if facts is not None else ""
    cast = "is cast to fp32" if size == 4 else "stays in half precision"
    return Report(
        place(context, recipe.config.get("load_in_4bit")),
        f"load_in_4bit beside adapter: lora quantizes nothing: the base {cast}{takes}",
        Severity.WARNING,
        help="adapter: qlora, or load_in_4bit: false",
    )
