"""Confirmation: a fix is made in memory, its files are read again, its runs resolved and estimated again.

Only what then comes out as the fix said is offered or written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path

from lintfit.boundary import Apart, Mistakes, to_the_end
from lintfit.documents.edits import apply
from lintfit.documents.files import is_notebook
from lintfit.documents.model import Document, Edit, FileEdit
from lintfit.documents.steps import OF_RUN, Steps
from lintfit.documents.workspace import Workspace
from lintfit.findings.model import Applicability, Finding, Fix
from lintfit.findings.results import RunResult
from lintfit.fit.care import Care
from lintfit.frozen import frozen, replace
from lintfit.memory.activations.recipe import attention_of
from lintfit.memory.result import Verdict
from lintfit.options.model import Options
from lintfit.run.build import build
from lintfit.run.model import Run
from lintfit.run.sharing import changed_settings
from lintfit.settings.model import UNKNOWN, Setting
from lintfit.settings.values import AS_LOADED
from lintfit.verdict.judge import judge
from lintfit.verdict.model import Judged

_RANKS = (Verdict.FITS, Verdict.TIGHT, Verdict.UNKNOWN, Verdict.DOES_NOT_FIT)
"""Verdicts, best first."""


_MANY = 20
"""Findings of one rule over one file from which on their fixes are confirmed together."""
_MOST_AGAIN = 3 << 20
"""Characters of files that are read again for so many fixes that do not hold at once, which takes some four seconds. A
config of 60 KB may have a thousand such findings; none of a project has a tenth of them."""


@frozen(eq=False)
class Confirmed:
    """Findings whose fixes hold what they promise; the others keep their message and lose the fix.

    ``refused`` counts the fixes that were taken away.
    """

    findings: tuple[Finding, ...]
    refused: int


class Confirmation:
    """What fixes would do to some runs, judged against what these files and runs are now."""

    def __init__(
        self,
        runs: Sequence[RunResult],
        workspace: Workspace,
        options: Options,
        apart: Apart = to_the_end,
        work: Steps | None = None,
    ) -> None:
        self.runs, self.workspace, self.options, self.apart = runs, workspace, options, apart
        self._work = work
        """What may still be spent; None without a bound."""
        self._ends = False
        """Whether what is left when it is spent does not hold: it is only offered, and its turn may not come."""
        self._cut = False
        """Whether that was so of the last fix."""
        self.unconfirmed: list[Finding] = []
        """Findings whose fixes were taken away as it would have taken too long to confirm them."""
        self._by_id = {judged.run.id: judged for judged in runs}
        self._care = Care(workspace)
        self._again = _MOST_AGAIN
        self._reached: dict[int, str] = {}
        """By the fix: another run that fits as it is and that the fix would change."""

    def of(self, findings: Iterable[Finding]) -> Confirmed:
        """The findings without fixes that do not come out as they claim; plans are confirmed where they are made.

        A fix that takes along a comment or a key that code reads says so and is safe no longer.
        """
        plans = {id(run.plan.fix) for run in self.runs if run.plan is not None}
        kept: list[Finding] = []
        refused = 0
        findings, self._ends = tuple(findings), True
        together, apart = self._together([each for each in findings if id(each.fix) not in plans])
        for finding in findings:
            fix = finding.fix
            if fix is None or not fix.edits or id(fix) in plans or id(fix) in together:
                kept.append(finding)
            elif id(fix) in apart and not self._reads_again(finding):
                kept.append(replace(finding, fix=None))
                self.unconfirmed.append(finding)
            elif self._comes_out(finding, fix):
                kept.append(replace(finding, fix=self._care.weighed(self._for_its_run(fix), finding.place)))
            else:
                kept.append(replace(finding, fix=None))
                if self._cut:
                    self.unconfirmed.append(finding)
                else:
                    refused += 1
        return Confirmed(tuple(kept), refused)

    def _together(self, findings: Sequence[Finding]) -> tuple[frozenset[int], frozenset[int]]:
        """The fixes, by identity, of many findings of one rule over one file that hold when all are made at once, and
        take nothing along: a file with a thousand such findings is read again once, not a thousand times. And those of
        as many that do not."""
        groups: dict[tuple[str, Path, str | None], list[Finding]] = {}
        for finding in findings:
            path = finding.place.document.path
            if finding.fix is not None and finding.fix.edits and {edit.path for edit in finding.fix.edits} == {path}:
                groups.setdefault((finding.rule, path, finding.run), []).append(finding)
        many = [group for group in groups.values() if len(group) > _MANY]
        held = frozenset(id(each.fix) for group in many for part in _rounds(group) for each in self._hold_at_once(part))
        return held, frozenset(id(each.fix) for group in many for each in group) - held

    def _reads_again(self, finding: Finding) -> bool:
        """Whether there is room for reading the file of a finding once more."""
        self._again -= len(finding.place.document.text)
        return self._again > 0

    def _hold_at_once(self, findings: Sequence[Finding]) -> Sequence[Finding]:
        """Those of many findings that hold at once, and with that each alone; by halves where not all do."""
        if len(findings) <= _MANY or self._cut:
            return ()
        if self._all(findings):
            return findings
        half = len(findings) // 2
        halves = (findings[:half], findings[half:])
        return tuple(each for part in halves if self._reads_again(part[0]) for each in self._hold_at_once(part))

    def _all(self, findings: Sequence[Finding]) -> bool:
        edits = edits_of(findings)
        try:
            taken = self._care.of(edits, [finding.place for finding in findings])
            if taken.comments or taken.speaking or taken.read or taken.unsearched:
                return False
            return self.all_hold(findings, texts_after(edits, self.workspace))
        except ValueError:  # two of them collide
            return False

    def all_hold(self, findings: Sequence[Finding], texts: Mapping[Path, str]) -> bool:
        """Whether all these fixes hold when they are made at once, which leaves these texts; those of several findings
        also reach no other run that fits."""
        if len(findings) == 1:
            return self.holds(findings[0], texts)
        whole = _whole(findings)
        with Mistakes().end_at(""):  # which of them a mistake comes of is told when each is alone
            return self._holds(whole, texts) and self._reached.pop(id(whole.fix), None) is None
        return False

    def holds(self, finding: Finding, texts: Mapping[Path, str]) -> bool:
        """Whether with these texts the files read as well as before, their runs fit as well, and the fix is true."""
        with self.apart(finding.place.document.path.as_posix()):
            return self._holds(finding, texts)
        return False

    def _holds(self, finding: Finding, texts: Mapping[Path, str]) -> bool:
        assert finding.fix is not None
        changed = self.workspace.with_overlay(texts)
        if self._reads_worse(finding.fix, changed):
            return False
        for judged in _each_kind([each for each in self.runs if touched(each.run, texts)], finding.run, texts):
            if not self._takes() and self._ends:
                self._cut = True
                return False
            after = self._built(judged, changed)
            if finding.run == judged.run.id and not _as_claimed(finding.fix, after):
                return False
            if not _no_worse(judged, after, finding.fix):
                return False
            if finding.run != judged.run.id and _changes_fitting(judged, after, finding.fix):
                self._reached.setdefault(id(finding.fix), judged.run.id)
        return not self._changes_others(finding, finding.fix, texts)

    def all_apart(
        self,
        made: Sequence[Finding],
        findings: Sequence[Finding],
        edits: Sequence[FileEdit],
        texts: Mapping[Path, str],
    ) -> bool:
        """Whether fixes of a run each hold when they are made at once, after some that are ``made``, and have nothing
        to do with each other: all others leave each one's run as it is, so that its fix is what it would be after them.

        ``edits`` are those of all of them, which leave these texts.
        """
        with Mistakes().end_at(""):  # each has its turn alone in the next pass
            together = (*made, *findings)
            spent = self._work is not None and self._work.spent
            return (
                not spent
                and all(self._is_left(each, edits) for each in together)
                and self._all_come_out(together, texts)
            )
        return False

    def _is_left(self, finding: Finding, edits: Sequence[FileEdit]) -> bool:
        """Whether the run of a finding is as it was when all these edits are made but those of the finding's fix."""
        judged = self._by_id.get(finding.run or "")
        if judged is None:
            return False
        own = {id(edit) for edit in edits_of([finding])}
        texts = texts_after((edit for edit in edits if id(edit) not in own), self.workspace)
        if not touched(judged.run, texts) and judged.run.looked_for.isdisjoint(map(self.workspace.located, texts)):
            return True
        return self._takes() and _is_same(judged.run, self._built(judged, self.workspace.with_overlay(texts)))

    def _all_come_out(self, findings: Sequence[Finding], texts: Mapping[Path, str]) -> bool:
        """Whether with these texts each of these fixes is true of its run, and no run is worse off."""
        whole, changed = _whole(findings), self.workspace.with_overlay(texts)
        assert whole.fix is not None
        fixes = {finding.run: finding.fix for finding in findings}
        if self._reads_worse(whole.fix, changed):
            return False
        about = [each for each in self.runs if each.run.id in fixes]
        others = [each for each in self.runs if each.run.id not in fixes and touched(each.run, texts)]
        for judged in (*about, *_each_kind(others, None, texts)):
            if not self._takes():
                return False
            after, fix = self._built(judged, changed), fixes.get(judged.run.id)
            if fix is not None and not _as_claimed(fix, after):
                return False
            if not _is_same(judged.run, after) and not _no_worse(judged, after, fix or whole.fix):
                return False
        return not any(self._changes_others(each, each.fix, texts) for each in findings if each.fix is not None)

    def _takes(self) -> bool:
        return self._work is None or self._work.take(OF_RUN)

    def _built(self, judged: RunResult, changed: Workspace) -> Run:
        return build(judged.run.origin, changed, self.options)

    def _reads_worse(self, fix: Fix, changed: Workspace) -> bool:
        """Whether a file that a fix changes has more in it that cannot be parsed than it had."""
        for edit in fix.edits:
            if is_notebook(edit.path):
                if _unread_cells(edit.path, changed) > _unread_cells(edit.path, self.workspace):
                    return True
                continue
            known = edit.document
            after_errors = _syntax_errors(changed.read(edit.path, known.kind if known is not None else None))
            if after_errors > (_syntax_errors(known) if known is not None else 0):
                return True
        return False

    def _for_its_run(self, fix: Fix) -> Fix:
        """The fix, unsafe where it changes a run that needs no change."""
        other = self._reached.get(id(fix))
        if other is None or fix.applicability is not Applicability.SAFE:
            return fix
        return replace(fix, applicability=Applicability.UNSAFE, caution=f"{other} fits as it is, and would change")

    def _changes_others(self, finding: Finding, fix: Fix, texts: Mapping[Path, str]) -> bool:
        """Whether a fix that changes a setting of one run, or how its model is spread, would change another of the
        tree, which nobody asks about."""
        from lintfit.fit import apart

        own = next((each.run for each in self.runs if each.run.id == finding.run), None)
        if own is None or not (fix.changes or any(map(_drops_map, fix.edits))):
            return False
        kept = apart.Apart(own, self.workspace, self.options, fix.changes.items())
        return kept.changes_strangers(texts, {each.run.id for each in self.runs})

    def _comes_out(self, finding: Finding, fix: Fix) -> bool:
        self._cut = False
        try:
            return self.holds(finding, texts_after(fix.edits, self.workspace))
        except ValueError:  # two of its own edits collide
            return False


def _drops_map(edit: FileEdit) -> bool:
    """Whether an edit takes a ``device_map`` away, which is no setting, from all that run the script."""
    return edit.document is not None and "device_map" in edit.document.slice(edit.edit.span)


def _whole(findings: Sequence[Finding]) -> Finding:
    """One finding for several, with a fix that has the edits and claims of all, and is safe where any is: no run may
    then have another batch."""
    fixes = [finding.fix for finding in findings if finding.fix is not None]
    claims = {name: value for fix in fixes for name, value in fix.changes.items()}
    safe = any(fix.applicability is Applicability.SAFE for fix in fixes)
    applicability = Applicability.SAFE if safe else Applicability.UNSAFE
    return replace(
        findings[0], fix=replace(fixes[0], edits=edits_of(findings), changes=claims, applicability=applicability)
    )


def _rounds(findings: Sequence[Finding]) -> Sequence[Sequence[Finding]]:
    """Findings in as few parts as it takes for no two edits of a part to overlap, where each has a single one: names
    are taken out of a comment each with the comma beside it."""
    if any(finding.fix is None or len(finding.fix.edits) != 1 for finding in findings):
        return [findings]
    rounds: list[list[Finding]] = []
    ends: list[int] = []
    for finding in sorted(findings, key=_edited):
        start, end = _edited(finding)
        at = next((index for index, behind in enumerate(ends) if behind <= start), len(ends))
        if at == len(ends):
            rounds.append([])
            ends.append(0)
        rounds[at].append(finding)
        ends[at] = end
    return rounds


def _edited(finding: Finding) -> tuple[int, int]:
    """From where to where the one edit of a finding's fix reaches."""
    assert finding.fix is not None
    span = finding.fix.edits[0].in_file.span
    return span.start, span.end


def edits_of(findings: Iterable[Finding]) -> tuple[FileEdit, ...]:
    """The edits of all fixes."""
    return tuple(edit for finding in findings if finding.fix is not None for edit in finding.fix.edits)


def _each_kind(runs: Sequence[RunResult], own: str | None, texts: Mapping[Path, str]) -> Iterator[RunResult]:
    """The run that a finding is about, and of the others one of each kind: launches of a script by the hundred, which
    differ in their data and where they save, come out alike.

    Alike are runs that have the same changed files, the same settings from there, spec and verdict, where none of the
    changed files is the one that they begin in.
    """
    kinds: list[tuple[object, ...]] = []
    for judged in sorted(runs, key=lambda each: each.run.id != own):
        run = judged.run
        if run.origin.path in texts:
            yield judged
            continue
        kind = (
            {document.path for document in run.documents if document.path in texts},
            {name: _stated(setting, texts) for name, setting in run.settings.items()},
            judged.verdict,
            run.spec,
            run.unknown,
        )
        if kind not in kinds:
            kinds.append(kind)
            yield judged


def _stated(setting: Setting, texts: Mapping[Path, str]) -> tuple[object, ...]:
    """What kinds of runs are told apart by: a setting's value, unknown ones alike, and which changed file has a say."""
    value, given = setting.value, setting.provenance
    path = given.place.document.path if given.place is not None else None
    own = "unknown" if value is UNKNOWN else (type(value), value)
    return own, given.kind, path if path in texts else None, *(_stated(other, texts) for other in setting.overrode)


def _is_same(before: Run, after: Run) -> bool:
    """Whether a run, read again, has what it had."""
    same = before.spec == after.spec and before.unknown == after.unknown
    return same and not changed_settings(before, after)


def _no_worse(before: RunResult, after: Run, fix: Fix) -> bool:
    """Whether a run fits as well as it did; after a safe fix also with the same effective batch."""
    if fix.applicability is Applicability.SAFE and _batch(before.run) != _batch(after):
        return False
    judged = judge(after)
    if before.verdict is Verdict.UNKNOWN:
        return judged.verdict is not Verdict.DOES_NOT_FIT or not _more(before, judged)
    return _RANKS.index(judged.verdict) <= _RANKS.index(before.verdict)


def _changes_fitting(before: RunResult, after: Run, fix: Fix) -> bool:
    """Whether a fix of another run's memory changes the settings of one that fits as it is."""
    return before.verdict is Verdict.FITS and bool(fix.changes) and bool(changed_settings(before.run, after))


def _batch(run: Run) -> int | None:
    return run.spec.effective_batch if run.spec is not None else None


def _more(before: RunResult, after: Judged) -> bool:
    """Whether a run whose memory was counted before, as far as it was known, takes more now."""
    if before.estimate is None or after.estimate is None:
        return False
    return after.estimate.peak.likely > before.estimate.peak.likely


def _as_claimed(fix: Fix, after: Run) -> bool:
    """Whether the run, read again, has the settings that the fix was to give it: as written, or as they then run."""
    return all(_has(after, name, value) for name, value in fix.changes.items())


def _has(run: Run, name: str, value: object) -> bool:
    if value == AS_LOADED or run.spec is None or not hasattr(run.spec, name):
        return True
    runs = attention_of(run.spec) if name == "attention" else getattr(run.spec, name)
    return value in (run.value(name), runs)


def touched(run: Run, texts: Mapping[Path, str]) -> bool:
    """Whether a run reads one of these files."""
    return any(document.path in texts for document in run.documents)


def texts_after(edits: Iterable[FileEdit], workspace: Workspace) -> dict[Path, str]:
    """The whole text of every edited file with its edits made. Raises ValueError where edits overlap."""
    by_path: dict[Path, list[Edit]] = {}
    for edit in edits:
        by_path.setdefault(edit.path, []).append(edit.in_file)
    return {path: apply(text_of(path, workspace), group) for path, group in by_path.items()}


def text_of(path: Path, workspace: Workspace) -> str:
    """The text of a file as it is; empty where there is none yet."""
    return workspace.file(path).text if workspace.exists(path) else ""


def _unread_cells(path: Path, workspace: Workspace) -> float:
    """How many cells of a notebook cannot be parsed; all, where it is none any more."""
    from lintfit.documents.notebook import NotNotebook, read_notebook
    from lintfit.documents.notebook_code import unparsed

    try:
        return len(unparsed(read_notebook(workspace.file(path).text)))
    except NotNotebook:
        return inf


def _syntax_errors(document: Document) -> int:
    return sum(problem.code == "syntax-error" for problem in document.problems)
