"""What a rule gets to see, and what it gives back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lintfit.documents.model import Document, KeyPath, Span
from lintfit.findings.model import Fix, Plan, Rejected, Related, Severity
from lintfit.frozen import frozen, replace
from lintfit.memo import Memo
from lintfit.memory.result import Estimate, Verdict
from lintfit.run.model import Run
from lintfit.settings.model import Place
from lintfit.sources.base import Source
from lintfit.verdict.beyond import Beyond
from lintfit.verdict.capped import ONE_LINE
from lintfit.verdict.scaling import Scaling

if TYPE_CHECKING:
    from lintfit.documents.directives import Directive
    from lintfit.documents.workspace import Workspace
    from lintfit.run.key_reads import Read


@frozen(eq=False)
class Report:
    """A finding without the rule's name: the engine adds that from the rule's page.

    ``severity`` None takes the page's.
    """

    place: Place
    message: str
    severity: Severity | None = None
    related: tuple[Related, ...] = ()
    fix: Fix | None = None
    help: str = ""
    decided_by: tuple[str, ...] = ()
    """The settings that decide whether this holds; none for those that the rule's module names (``DECIDED_BY``)."""


@frozen(eq=False)
class FileContext:
    """One document on its own, as ``check_file(context)`` gets it.

    ``source`` is None where the syntax is broken or the dialect unknown. ``runs`` are the runs that the
    document takes part in; empty where no launcher or script names it.
    """

    document: Document
    source: Source | None
    runs: tuple[Run, ...] = ()
    named: bool = False
    """Whether the user gave the file by name."""
    workspace: Workspace | None = None
    """The files around the document: their code is asked where it decides whether a key is a mistake."""

    def read_by(self, path: KeyPath) -> Read | None:
        """Where code of the tree surely reads a key of the document itself."""
        if self.workspace is None:
            return None
        from lintfit.run.key_reads import key_reads

        found = key_reads(self.workspace).of(self.document.path, path)
        return found if found is not None and found.sure else None


_ROOM = 0.85
"""The share of the GPU up to which a peak leaves room for a long sample and for fragmentation."""


def has_room(estimate: Estimate | None) -> bool:
    """Whether the likely peak leaves room on the GPU, whatever the high end does."""
    return estimate is not None and leaves_room(estimate, estimate.peak.likely)


def leaves_room(estimate: Estimate, peak: int) -> bool:
    """Whether one end of an estimate's peak leaves room on its GPU."""
    return estimate.capacity_bytes is not None and peak <= _ROOM * estimate.capacity_bytes


SHORT = 256
"""Tokens that some sample of most data has."""
_SHORTEST: Memo[Estimate | None] = Memo(64)
"""Estimates of runs with short samples, for which several rules ask."""
_TRAINED: Memo[Estimate | None] = Memo(64)
"""Estimates of runs without their evaluations, for which many rules ask."""


@frozen(eq=False)
class RunContext:
    """One run with its estimate, as ``check_run(context)`` gets it."""

    run: Run
    estimate: Estimate | None
    plan: Plan | None = None
    rejected: tuple[Rejected, ...] = ()
    """What was tried and does not suffice, whether or not there is a plan."""
    shortfall: str = ""
    """Where no plan fits: what is missing, in GiB and in GPUs."""
    scaling: Scaling | None = None
    """The run on other numbers of GPUs, where nobody states how many it has."""
    by_version: tuple[str, ...] = ()
    """What each version of a library gives, where they alone leave the verdict open."""
    longest: int | None = None
    """Tokens of a sequence up to which the run fits, where longer ones are possible."""

    beyond: Beyond | None = None
    """What decides beside the settings of the run; ``estimate`` is without it."""

    @property
    def verdict(self) -> Verdict:
        return self.estimate.verdict if self.estimate else Verdict.UNKNOWN

    def what_if(self, **changes: Any) -> Estimate | None:
        """The estimate of the same run with some fields of its spec changed; None where it is unknown.

        Its verdict holds for every number of GPUs where nobody states one.
        """
        from lintfit.memory import estimate
        from lintfit.run.change import changed_spec, states_deepspeed
        from lintfit.verdict.scaling import scaling

        if self.run.spec is None:
            return None
        spec = changed_spec(self.run.spec, changes, launched=states_deepspeed(self.run))
        result = estimate(spec)
        return result if self.scaling is None else replace(result, verdict=scaling(spec).verdict)

    @property
    def at_shortest(self) -> Estimate | None:
        """The estimate with short samples, where the stated length is only the most that they may have."""
        from lintfit.verdict.capped import at_shortest

        return None if self.beyond is not None else _SHORTEST.get(self, "", lambda: at_shortest(self.run))

    @property
    def may_be_shorter(self) -> bool:
        """Whether the run likely fits with samples as long as they may be, surely with short ones, and nobody knows how
        long they are."""
        from lintfit.verdict.capped import exact_length

        estimate = self.estimate
        if estimate is None or estimate.capacity_bytes is None or exact_length(self.run):
            return False
        if estimate.peak.likely > estimate.capacity_bytes:
            return False
        return self.at_short is not None and self.at_short.verdict is Verdict.FITS

    @property
    def at_short(self) -> Estimate | None:
        """The estimate with samples of :data:`SHORT` tokens."""
        spec = self.run.spec
        return _SHORTEST.get(self, "short", lambda: self.what_if(seq_len=min(SHORT, spec.seq_len))) if spec else None

    @property
    def at_line(self) -> Estimate | None:
        """The estimate with samples of :data:`ONE_LINE` tokens, where those of :data:`SHORT` have no room."""
        short, spec = self.at_short, self.run.spec
        if spec is None or short is None or short.verdict is not Verdict.DOES_NOT_FIT:
            return None
        return _SHORTEST.get(self, "line", lambda: self.what_if(seq_len=min(ONE_LINE, spec.seq_len)))

    @property
    def fits_with_no_data(self) -> bool:
        """Whether a run is too large with samples of :data:`ONE_LINE` tokens, too."""
        return self.at_line is not None and self.at_line.verdict is Verdict.DOES_NOT_FIT

    @property
    def fits_at(self) -> int | None:
        """Tokens of shorter samples with which the run fits, where nobody knows whether there are longer ones."""
        from lintfit.verdict.capped import fits_at

        return fits_at(self.run) if self.beyond is None and self.scaling is None else None

    @property
    def trained(self) -> Estimate | None:
        """The estimate without evaluations, where one of them is the peak: what rules about the training ask for."""
        if self.estimate is None or not self.estimate.peaks_in_evaluation or self.verdict is Verdict.UNKNOWN:
            return self.estimate
        return _TRAINED.get(self, "", lambda: self.what_if(eval_batch_size=0))

    @property
    def verdict_of_training(self) -> Verdict:
        """The verdict without the evaluations."""
        trained = self.trained
        return trained.verdict if trained is not None else Verdict.UNKNOWN

    def severity(self) -> Severity:
        """How bad a memory anti-pattern of the training is: it breaks the fit, costs something, or has room."""
        match self.verdict_of_training:
            case Verdict.DOES_NOT_FIT:
                return Severity.ERROR
            case Verdict.TIGHT if self.longest is not None or has_room(self.estimate) or self.may_be_shorter:
                return Severity.INFO  # it fits with samples shorter than their cap, or likely so: tight-fit says it
            case Verdict.TIGHT | Verdict.UNKNOWN:
                return Severity.WARNING
            case Verdict.FITS:
                headroom = self.trained.headroom if self.trained is not None else None
                return Severity.INFO if headroom is None or headroom >= 0.15 else Severity.WARNING


@frozen(eq=False)
class UnusedContext:
    """A comment and a rule in it that silences nothing, as ``check_unused(context)`` gets them.

    ``name`` is the rule as the comment writes it, at ``span`` and, where it says it several times, at ``again``;
    ``rule`` its name. ``for_runs`` says that the rule looks at runs, ``judged`` that there was all that it needs to
    report something: a launch or a script, and a memory that is known.
    """

    directive: Directive
    name: str
    span: Span
    again: tuple[Span, ...]
    rule: str
    for_runs: bool
    judged: bool
