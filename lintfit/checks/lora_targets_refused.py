from __future__ import annotations

from collections.abc import Iterator, Sequence

from lintfit.catalog.facts import ModelFacts
from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.fixes import related
from lintfit.checks.helpers.readers import milder, older, only_load
from lintfit.checks.helpers.runs import anchor
from lintfit.findings.model import Related, Severity
from lintfit.run.model import Run
from lintfit.settings.model import Place
from lintfit.sources.recipes.base import Recipe
from lintfit.sources.script.model import Call

_PASSED_BY = ("conv1d", "out_proj")
"""Modules whose weights Mamba's kernels take themselves (peft ``tuners_utils.py:_check_lora_target_modules_mamba``)."""
_MOST = 6
"""Names of modules that a message lists."""

OF_LAUNCHES = True
_OTHER_MODELS = ("diffusers", "Transformer2DModel", "FluxTransformer", "UNet2DConditionModel")
"""What is said where adapters are those of an image model, beside a language model that only encodes or judges."""
DECIDED_BY = ("model", "lora_targets")


def check_run(context: RunContext) -> Iterator[Report]:
    run = context.run
    stated, model, place = run.settings.get("lora_targets"), run.settings.get("model"), _surely(run)
    if stated is None or model is None or place is None or run.facts is None or stated.provenance.kind == "derived":
        return
    targets, facts, where = stated.value, run.facts, stated.provenance.place or place
    named_at = related(model.provenance.place, "the model is named here")
    if isinstance(targets, list | tuple) and targets and all(isinstance(target, str) for target in targets):
        # transformers 5 fused experts, which PEFT finds by rules: other modules are called so in every version.
        if facts.exact and facts.moe is None and not any(_found(target, facts) for target in targets):
            named = ", ".join(map(repr, targets))
            yield Report(
                where,
                f"{model.value} has no module called {named}: PEFT stops with ValueError "
                f'"Target modules {{{named}}} not found in the base model"',
                severity=Severity.ERROR,
                related=named_at,
                help=f'name its own ({", ".join(_modules(facts)[:_MOST])}), or all of them with "all-linear"',
            )
            return
    elif targets != "all-linear":
        return
    yield from _passed_by(run, facts, targets, where, named_at)


def _passed_by(
    run: Run, facts: ModelFacts, targets: str | Sequence[str], where: Place, named_at: tuple[Related, ...]
) -> Iterator[Report]:
    """The modules that PEFT does not adapt in Mamba's relatives."""
    since = facts.code.lora_refused_since
    before = older((run,), "peft", since) if since else True
    if before:
        return
    modules = _modules(facts)
    refused = [name for name in _PASSED_BY if name in (modules if targets == "all-linear" else targets)]
    if not refused:
        return
    asked = f"{targets} reaches {refused[0]}" if targets == "all-linear" else refused[0]
    yield Report(
        where,
        f"{asked}, whose weight Mamba's kernels take by themselves: PEFT stops with ValueError "
        f"\"Module '{refused[0]}' is incompatible with Mamba-based models (model_type='{facts.model_type}')\"",
        severity=milder(Severity.ERROR) if before is None else Severity.ERROR,
        related=named_at,
        help=f"name others ({', '.join([name for name in modules if name not in _PASSED_BY][:_MOST])})",
    )


def _surely(run: Run) -> Place | None:
    """Where the adapters are asked for, in a run that surely has them, on a model that transformers loads."""
    if run.value("method") != "lora":
        return None
    if run.recipe is not None:
        return _asked_of_trl(run.recipe, anchor(run))
    if run.script is None:
        return None
    if run.mentions(*_OTHER_MODELS):
        return None
    config, load = run.script.facts.peft_config, only_load(run)
    if config is None or config.taken is not True or not config.function.startswith("peft."):
        return None
    return config.place if load is not None and not _own_code(load) else None


def _asked_of_trl(recipe: Recipe, place: Place) -> Place | None:
    """The place for TRL's front end, which hands PEFT what it is told; others name the modules of their own models."""
    own_code = recipe.argument("trust_remote_code")
    trusted = own_code is not None and own_code.value is not False
    return place if recipe.uses_trl and not trusted else None


def _own_code(load: Call) -> bool:
    """Whether the load may take code that lies beside the weights."""
    asked = load.argument("trust_remote_code")
    return load.spreads or (asked is not None and asked.value is not False)


def _found(target: str, facts: ModelFacts) -> bool:
    """Whether PEFT finds a module by its whole name or the end of one, or one that others are parts of."""
    wanted = target.split(".")
    for tensor in facts.tensors:
        parts = tensor.name.split(".")[:-1]
        for end in range(1, len(parts) + 1):
            if _ends_with(parts[:end], wanted):
                return True
    return False


def _ends_with(parts: list[str], wanted: list[str]) -> bool:
    """Whether a module's name ends so; a layer's number is any."""
    if len(wanted) > len(parts):
        return False
    pairs = zip(parts[len(parts) - len(wanted) :], wanted, strict=True)
    return all(part == word or (part == "{}" and word.isdecimal()) for part, word in pairs)


def _modules(facts: ModelFacts) -> list[str]:
    """The names of the layers' linear modules, each once."""
    found = [t.name.split(".")[-2] for t in facts.tensors if t.role == "linear" and t.where == "layer"]
    return list(dict.fromkeys(found))
