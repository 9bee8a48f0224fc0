"""What one invocation found out: the engine fills these shapes, the reporters show them. No logic but names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lintfit.findings.model import Finding, Plan, Rejected
from lintfit.frozen import field, frozen
from lintfit.memory.result import Estimate, Verdict
from lintfit.run.model import Run, Skipped
from lintfit.verdict.beyond import Beyond
from lintfit.verdict.model import Judged, Spread
from lintfit.verdict.scaling import Scaling

if TYPE_CHECKING:
    from lintfit.verdict.would_fit import WouldFit


@frozen(eq=False)
class RunResult:
    """One run and what was worked out about it.

    ``estimate`` is None where too much is unknown (``run.unknown`` then says what to add). ``plan`` is what would
    make the run fit; where none was found although it does not fit, ``rejected`` holds what was tried and
    ``shortfall`` says what is missing, in GiB and in GPUs. ``before`` is the estimate before this invocation's
    fixes, None where nothing of this run was fixed.
    """

    run: Run
    estimate: Estimate | None = None
    verdict: Verdict = Verdict.UNKNOWN
    plan: Plan | None = None
    rejected: tuple[Rejected, ...] = ()
    shortfall: str = ""
    before: Estimate | None = None
    alternatives: tuple[Plan, ...] = ()
    """The best plan of every kind, where they were asked for; the first is no worse than ``plan``."""
    longest: int | None = None
    """Tokens of a sequence up to which the run fits, where nobody states how long they are and longer ones may not; of
    a tight run those above which it does not fit."""
    scaling: Scaling | None = None
    """The run on other numbers of GPUs, where nobody states how many it has."""
    refused_plans: int = 0
    """Plans that were carried out in memory and, read again, were not what they claimed."""
    unknown: tuple[str, ...] = ()
    """Why there is no verdict, each with what would make it known; empty for every other verdict."""
    by_version: tuple[str, ...] = ()
    """What each version of a library gives, where they alone leave the verdict open."""
    beyond: Beyond | None = None
    """What makes it need so much beside its settings, so that no plan for them would do."""
    spread: tuple[Spread, ...] = ()
    """What decides, where low and high differ in their verdict."""
    would_fit: tuple[WouldFit, ...] = ()
    """The usual GPUs, where nobody says which the run has."""

    @classmethod
    def of(cls, judged: Judged) -> RunResult:
        """What was judged of a run, before there are plans and fixes."""
        return cls(
            judged.run,
            judged.estimate,
            judged.verdict,
            longest=judged.longest,
            beyond=judged.beyond,
            scaling=judged.scaling,
            unknown=judged.unknown,
            by_version=judged.by_version,
        )

    @property
    def is_unknown(self) -> bool:
        """Whether the run has no verdict."""
        return self.verdict is Verdict.UNKNOWN


@frozen(eq=False)
class CheckResult:
    """Everything that one ``lintfit check`` has to say.

    ``findings`` are those that are left, ``fixed`` those that ``--fix`` mended; both in the order in which they are
    shown (by path, then place). ``errors`` are one-line problems with files that the user named (missing,
    unreadable): the exit status is then 2. ``notes`` are lines that change nothing ("7 files skipped: …").
    ``skipped`` are files that look like a part of a run and were not understood.
    ``diff`` is the unified diff of ``--diff``. ``fixed_stdin`` is the text of standard input after ``--fix``.
    ``ignored`` are findings that a comment silences, ``baselined`` those that the baseline counts: none is shown, all
    are told of. ``refused_fixes`` counts the fixes, plans among them, that are not offered because the files, read
    again with them, do not come out as they claim. ``changed`` maps each file that was written to the number of its
    fixes. ``files_read`` counts every file that was opened, ``configs`` those of a library's own form, whose keys were
    checked.
    """

    runs: tuple[RunResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    errors: tuple[str, ...] = ()
    fixed: tuple[Finding, ...] = ()
    ignored: tuple[Finding, ...] = ()
    baselined: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    diff: str = ""
    files_read: int = 0
    configs: int = 0
    refused_fixes: int = 0
    fixed_stdin: str | None = None
    changed: Mapping[Path, int] = field(default_factory=dict)
