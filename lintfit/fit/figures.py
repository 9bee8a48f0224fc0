"""Answers to the opposite question: one configuration with its figures, beside the one that is just out of reach."""

from __future__ import annotations

from typing import Any

from lintfit.fit.search import Fitting
from lintfit.frozen import frozen
from lintfit.memory.result import Estimate


@frozen
class Figure:
    """One configuration: what it is called, the settings that change for it, its estimate."""

    text: str
    value: Any
    changes: dict[str, Any]
    estimate: Estimate
    step_time: float | None = None
    """Relative to the run as it is, for the same number of tokens; None where that is not the question."""
    notes: tuple[str, ...] = ()


@frozen
class Extreme:
    """One answer: ``best`` fits (None: nothing does), ``beyond`` is the next that does not (None: there is none).

    ``fitting`` is the candidate to be written, where there is one; ``remark`` what else is to be known.
    """

    question: str
    best: Figure | None
    beyond: Figure | None
    remark: str = ""
    fitting: Fitting | None = None
