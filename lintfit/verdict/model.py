"""What is judged of one run. No logic but names."""

from __future__ import annotations

from lintfit.frozen import frozen
from lintfit.memory.result import Estimate, Verdict
from lintfit.run.model import Run
from lintfit.verdict.scaling import Scaling


@frozen(eq=False)
class Judged:
    """One run with its estimate and verdict; ``estimate`` is None where too much is unknown."""

    run: Run
    estimate: Estimate | None = None
    verdict: Verdict = Verdict.UNKNOWN
    longest: int | None = None
    """Tokens of a sequence up to which the run fits, where nobody states how long they are and longer ones may not."""
    scaling: Scaling | None = None
    """The run on other numbers of GPUs, where nobody states how many it has."""
    unknown: tuple[str, ...] = ()
    """Why there is no verdict, each with what would make it known; empty for every other verdict."""
    by_version: tuple[str, ...] = ()
    """What each version of a library gives, where they alone leave the verdict open."""
