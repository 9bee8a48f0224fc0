from __future__ import annotations

from collections.abc import Iterator

from lintfit.catalog import arguments as libraries
from lintfit.checks.helpers.context import Report, RunContext
from lintfit.checks.helpers.llamafactory import recipe_of, stated
from lintfit.findings.model import Applicability, Fix, Severity
from lintfit.sources.recipes.llamafactory_arguments import TRAINING, LlamaFactoryArguments
from lintfit.sources.training_defaults import default_of
from lintfit.versions import FLOOR

_SINCE = "0.9.2"
_TAKES = {
    "galore": ("adamw_torch", "adamw_bnb_8bit", "adamw_8bit", "paged_adamw_8bit", "adafactor"),
    "apollo": ("adamw_torch",),
}
"""What ``optim`` may be (``_create_galore_optimizer``, ``_create_apollo_optimizer`` of ``train/trainer_utils.py``)."""


def check_run(context: RunContext) -> Iterator[Report]:
    recipe = recipe_of(context.run)
    if recipe is None or not recipe.arguments.since(_SINCE):
        return
    arguments = recipe.arguments
    found = arguments.found("optim")
    for name, takes in _TAKES.items():
        place = stated(arguments, f"use_{name}") if arguments.on(f"use_{name}") else None
        if place is None or not isinstance(found.value, str) or found.value in takes:
            continue
        states = "optim" in arguments.keys
        by_default = "" if states else f", the default ({found.provenance.detail})"
        written = arguments.write(("optim",), "adamw_torch")
        yield Report(
            place,
            f"use_{name} with optim {found.value}{by_default}: LLaMA-Factory stops with NotImplementedError (Unknown "
            f"optim: {found.value}.)",
            # Before torch 2.8 the default is another one, and few projects say which torch they have.
            severity=None if states else Severity.INFO if _may_default_to(arguments, takes) else Severity.WARNING,
            fix=Fix("optim: adamw_torch", Applicability.UNSAFE, written) if written else None,
            help=f"write optim: {', '.join(takes)}",
        )


def _may_default_to(arguments: LlamaFactoryArguments, takes: tuple[str, ...]) -> bool:
    """Whether a transformers that may be installed, and that has the fields which the recipe states, has a default that
    is taken."""
    newest, floor = (arguments.versions.get(name) for name in ("transformers", "transformers" + FLOOR))
    studied = libraries.studied("transformers", newest, floor)
    stated = {name for name in arguments.keys.stated if libraries.is_argument(name)}
    for index in studied.possible if studied is not None else ():
        fields = libraries.fields_at(TRAINING, {"transformers": index})
        if fields is not None and stated <= fields.keys():
            found = default_of(TRAINING, "optim", {"transformers": libraries.version_at("transformers", index)})
            if found is not None and found[0] in takes:
                return True
    return False
