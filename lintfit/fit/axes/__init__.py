"""The axes of the planner's space, one module each.

A module defines ``options(subject: Subject) -> Iterator[Option]``: the alternatives to leaving things as they are, each
a set of settings to change with what that means for the training. A new axis is a module here, its name in ``NAMES``,
and, where nobody writes these settings yet, their edits in ``lintfit/run/write.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from lintfit.fit.options import LEAVE, Option, Subject
from lintfit.frozen import replace
from lintfit.run.model import Run

NAMES = (
    "forced_float32",
    "loading",
    "partitioning",
    "precision",
    "checkpointing",
    "micro_batch",
    "evaluation",
    "predictions",
    "outputs",
    "gradients",
    "loss",
    "attention",
    "sharding",
    "saving",
    "buckets",
    "optimizer",
    "quantization",
    "adapters",
    "sequence",
    "cards",
)
"""Modules of this package, in the order in which a plan's steps are told and carried out."""


_FOLLOWING = frozenset({"reference_model"})
"""Settings that a recipe need not be able to say: what is derived of others."""


def axes(subject: Subject) -> Iterator[tuple[Option, ...]]:
    """The alternatives along each axis that has any for this run, "leave it" first."""
    said = _said_beside_a_recipe(subject.run)
    for name in NAMES:
        found = [LEAVE, *import_module(f"{__name__}.{name}").options(subject)]
        if said is not None:
            found = [option for option in found if option.changes.keys() <= said]
        if any(option.must for option in found):
            found = [option for option in found if option is not LEAVE]
        if len(found) > 1 or any(option.must for option in found):
            yield tuple(_placed(option, subject) for option in found)


def _said_beside_a_recipe(run: Run) -> frozenset[str] | None:
    """The settings that a recipe's run can say: in the recipe, or in the Accelerate YAML that starts it with FSDP; None
    where there is no recipe."""
    if run.recipe is None:
        return None
    by_launcher = run.accelerate is not None and run.accelerate.engine == "fsdp"
    return run.recipe.adjustable | _FOLLOWING | ({"fsdp"} if by_launcher else frozenset())


def _placed(option: Option, subject: Subject) -> Option:
    strange = subject.strange(option)
    return replace(option, strange=strange, leaves=subject.leaves(option)) if strange else option
