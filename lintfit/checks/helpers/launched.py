"""Whether anything of the tree starts a run, or hands a config to one."""

from __future__ import annotations

from lintfit.checks.helpers.context import FileContext
from lintfit.run.model import Run


def leads_to(run: Run) -> bool:
    """Whether a launch line leads to a run; the cells of a notebook, and files that the user puts together, are one."""
    return run.says("a launch leads to it", lambda: run.launch is not None or _is_put_together(run))


def is_used(run: Run) -> bool:
    """Whether a launch, a recipe or a script has the run's config by what it says, and not by where it lies alone."""
    return run.says("its config is used", lambda: _is_put_together(run) or _has_config(run))


def _is_put_together(run: Run) -> bool:
    return run.origin.in_notebook or bool(run.origin.partners)


def _has_config(run: Run) -> bool:
    return run.origin.kind != "config" and run.joined is None


def is_handed_on(context: FileContext) -> bool:
    """The same of a document, or whether the user asks about it by its name."""
    return context.named or any(map(is_used, context.runs))
