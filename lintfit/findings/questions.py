"""What ``lintfit estimate`` answers beside one figure: a run before and after, and one setting against another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lintfit.findings.results import RunResult
from lintfit.frozen import frozen
from lintfit.memory.result import Estimate

if TYPE_CHECKING:
    from lintfit.sources.logs.model import Log
    from lintfit.verdict.died import Cause, Compared


@frozen(eq=False)
class WhatIf:
    """One run as its files have it and as it was asked about.

    ``before`` is None where the files leave open what the flags state: there is one run then, not two.
    """

    after: RunResult
    before: RunResult | None = None
    effects: tuple[str, ...] = ()
    """Why each part of the memory is another, or the same."""


@frozen(eq=False)
class Cell:
    """One combination of a sweep; without an estimate the ``reason`` why there is no such run."""

    values: Mapping[str, Any]
    estimate: Estimate | None = None
    reason: str = ""


@frozen(eq=False)
class Sweep:
    """A run with every combination of the values of one setting or two."""

    run: RunResult
    settings: tuple[str, ...]
    cells: tuple[Cell, ...]


@frozen(eq=False)
class Explained:
    """A log's death, why it died, and the runs that it may have been, each with what it should have held there."""

    log: Log
    source: str
    """The log's name, as it was given."""
    causes: tuple[Cause, ...]
    runs: tuple[tuple[RunResult, Compared | None], ...] = ()
