"""What the rules about any front end's recipes share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lintfit.checks.helpers.context import Report
from lintfit.findings.model import Severity

if TYPE_CHECKING:
    from lintfit.sources.recipes.keys import Stated


def to_fill_in(empty: Sequence[tuple[str, Stated]], stops: str) -> Report:
    """Information on keys that a recipe has without a value, which whoever takes it is to write: no mistake of it."""
    names = " and ".join(name for name, _ in empty)
    place = next((found.provenance.place for _, found in empty if found.provenance.place is not None), None)
    assert place is not None
    return Report(place, f"{names} is to be filled in: without it {stops}", Severity.INFO, help=f"write {names}")
