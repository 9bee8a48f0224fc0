"""What the rules about keys and flags share that whoever takes a file is to fill in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lintfit.checks.helpers.context import Report
from lintfit.checks.helpers.wording import united
from lintfit.findings.model import Severity

if TYPE_CHECKING:
    from lintfit.run.model import Run
    from lintfit.settings.model import Place
    from lintfit.sources.recipes.keys import Stated


def to_fill_in(empty: Sequence[tuple[str, Stated]], stops: str) -> Report:
    """Information on keys that a recipe has without a value, which whoever takes it is to write: no mistake of it."""
    place = next((found.provenance.place for _, found in empty if found.provenance.place is not None), None)
    assert place is not None
    return left_blank(place, [name for name, _ in empty], stops)


def left_blank(place: Place, names: Sequence[str], stops: str) -> Report:
    """The same of names, at the place of the first."""
    what = united(names)
    is_, it = ("is", "it") if len(names) == 1 else ("are", "them")
    return Report(place, f"{what} {is_} to be filled in: without {it} {stops}", Severity.INFO, help=f"write {what}")


_OF_A_PART = "start it with a launch line, or name it, to have it judged as a whole recipe"


def may_be_a_part(run: Run) -> bool:
    """Whether nothing starts a recipe and the user has not named it: what every recipe has may stand in another file,
    over which code merges this one (``OmegaConf.merge(base, override)``)."""
    return run.usual_command is not None and not run.origin.named


def of_a_part(place: Place, stops: str) -> Report:
    """Information on a recipe that lacks what every whole one has, where it may be a part of one."""
    return Report(place, f"no whole recipe, and nothing here starts it: alone {stops}", Severity.INFO, help=_OF_A_PART)


def is_of_a_part(report: Report) -> bool:
    return report.help == _OF_A_PART
