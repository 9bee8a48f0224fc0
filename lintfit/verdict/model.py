"""What is judged of one run. No logic but names."""

from __future__ import annotations

from lintfit.frozen import frozen
from lintfit.memory.result import Estimate, Verdict
from lintfit.run.model import Run
from lintfit.verdict.beyond import Beyond
from lintfit.verdict.scaling import Scaling


@frozen
class Spread:
    """One thing that moves a run within its range: what it is, the GiB that it decides, and how to state it.

    ``of_host``: of the host's memory, not of a GPU's.
    """

    what: str
    gib: float
    how: str
    of_host: bool = False

    def said(self) -> str:
        """``the version of trl is not stated (+25.1): --versions trl=VERSION``"""
        return f"{self.what} ({self.gib:+.1f}): {self.how}"


@frozen(eq=False)
class Judged:
    """One run with its estimate and verdict; ``estimate`` is None where too much is unknown."""

    run: Run
    estimate: Estimate | None = None
    verdict: Verdict = Verdict.UNKNOWN
    longest: int | None = None
    """Tokens of a sequence up to which the run fits, where nobody states how long they are and longer ones may not.

    Of a tight run: where its cap is not reached, above which it does not fit.
    """
    scaling: Scaling | None = None
    """The run on other numbers of GPUs, where nobody states how many it has."""
    unknown: tuple[str, ...] = ()
    """Why there is no verdict, each with what would make it known; empty for every other verdict."""
    by_version: tuple[str, ...] = ()
    """What each version of a library gives, where they alone leave the verdict open."""
    beyond: Beyond | None = None
    """What makes it need so much beside its settings, so that no plan for them would do."""
    moved_by: tuple[Spread, ...] = ()
    """Of a run that is tight, and not on the newest versions: those that make it so."""

    @property
    def peak(self) -> int:
        """Bytes of the likely peak; 0 without an estimate."""
        return self.estimate.peak.likely if self.estimate is not None else 0
