"""One invocation from paths to a result: read, resolve, estimate, plan, check; ``--fix`` goes round until stable."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lintfit.boundary import Mistakes
from lintfit.checks.helpers.context import FileContext, RunContext
from lintfit.checks.helpers.registry import breaks_the_command, errors_of, run_file_checks, run_run_checks
from lintfit.checks.helpers.runs import starts_too_many
from lintfit.checks.vllm_trainer_overlap import vllm_does_not_start
from lintfit.commands.read_as import Watched, is_config_of, reader_of, source_of
from lintfit.documents import door
from lintfit.documents.files import decode, encode
from lintfit.documents.limits import MAX_PLANNED, MAX_PLANNED_LINES
from lintfit.documents.model import NOT_READ, SYNTAX_ERROR, DataDocument, Document, Kind
from lintfit.documents.steps import (
    OF_ALL_KINDS,
    OF_PLAN,
    OF_PLANS,
    OF_RUN,
    Steps,
    of_confirming,
    of_fixing,
    of_plans,
    of_tree,
)
from lintfit.documents.workspace import Workspace
from lintfit.findings.model import Applicability, Finding
from lintfit.findings.results import CheckResult, RunResult
from lintfit.fit.reach import as_of_unused, within_reach, without_fix
from lintfit.frozen import frozen, replace
from lintfit.memory.result import Verdict
from lintfit.options.model import Options
from lintfit.options.roots import output_roots, roots_of
from lintfit.run.build import build
from lintfit.run.changes import Changes, changes_of
from lintfit.run.discover import FoundFiles, discover
from lintfit.run.load import Loaded, load
from lintfit.run.model import Run
from lintfit.run.shown import is_example_of_copy, only_shown
from lintfit.sources import detect
from lintfit.suppression.filter import sift
from lintfit.verdict.judge import judge
from lintfit.verdict.model import Judged
from lintfit.verdict.reasons import FAILED
from lintfit.verdict.spread import what_decides

if TYPE_CHECKING:
    from lintfit.commands.kept.store import Keeping, Store
    from lintfit.fit.mending import Mending

MOST_PLANS = 16
"""Launches of one file, the first ones, that a plan is looked for. Few files have more, and each takes as long as a
check. By their place, so that what is kept of a check is what another one makes."""
MOST_LISTED = 4
"""Of these, how many have all kinds of plans listed, which takes several times as long."""
MAX_PASSES = 20
"""How often ``--fix`` starts over; each pass mends at least one finding, so that this is never met in practice."""


def check(paths: Sequence[Path], options: Options, keeping: Keeping | None = None) -> CheckResult:
    """Check files and folders; with ``options.fix`` mend what can be mended, on disk or (``diff``) as a diff only.

    What is written is decided from files that nobody else fixes meanwhile. ``keeping`` holds what an earlier check of
    files that are hardly others has found out; a check that changes nothing may take it from there. Raises LintfitError
    where another lintfit is at it for long.
    """
    if keeping is not None:
        return _kept(paths, options, keeping)
    if not _writes(options):
        return _checked(paths, options)
    from lintfit.documents.locks import locked

    with locked(output_roots(paths, options) if options.write_baseline is not None else roots_of(paths, options)):
        return _checked(paths, options)


def _writes(options: Options) -> bool:
    """Whether files are changed, reports apart."""
    changes = options.fix or options.add_ignores is not None
    return (changes and not options.diff) or options.write_baseline is not None


def _kept(paths: Sequence[Path], options: Options, keeping: Keeping) -> CheckResult:
    """A check that takes what it can from an earlier one, and that does without where anything about that is odd."""
    search = partial(_found, paths, options)
    if keeping.earlier is not None:
        with suppress(Exception):
            workspace = new_workspace(paths, options)
            store = keeping.store(workspace)
            result = _Pass(keeping.found(search), workspace, options, store).check().result
            if not result.errors and not store.doubtful:
                return result
        keeping.earlier = None
    workspace = new_workspace(paths, options)
    return _Pass(keeping.found(search), workspace, options, keeping.store(workspace)).check().result


def _checked(paths: Sequence[Path], options: Options) -> CheckResult:
    changes = changes_of(paths, options)
    workspace = new_workspace(paths, options, changes)
    found = _found(paths, options, changes)
    checked = _Pass(found, workspace, options).check()
    texts: dict[Path, str] = {}
    if options.fix or (options.diff and options.add_ignores is None):
        checked, texts = _fix(found, workspace, options, checked)
    if options.add_ignores is not None:
        checked, texts = _add_ignores(found, workspace.with_overlay(texts), options, checked, texts)
    if options.fix or options.diff or options.add_ignores is not None:
        checked = replace(checked, result=_delivered(checked.result, texts, workspace, options))
    if options.write_baseline is not None:
        checked = _count(options.write_baseline, checked, options, output_roots(paths, options))
    return checked.result


def load_runs(
    paths: Sequence[Path], options: Options, workspace: Workspace | None = None
) -> tuple[Loaded, tuple[RunResult, ...]]:
    """The runs below some paths with their estimates, without any rule or plan."""
    workspace = workspace if workspace is not None else new_workspace(paths, options)
    found = _found(paths, options)
    loaded = load(found, workspace, options)
    named = [document for document in loaded.documents if document.path in found.named]
    mistakes = Mistakes()
    runs = tuple(RunResult.of(_judged(run, mistakes)) for run in loaded.runs)
    errors = (*loaded.errors, *_problems(named, SYNTAX_ERROR, NOT_READ), *mistakes.lines)
    return replace(loaded, errors=errors), runs


def _judged(run: Run, mistakes: Mistakes) -> Judged:
    """The run with its verdict; without one where this program fails over it."""
    with mistakes.end_at(run.id):
        return judge(run)
    return Judged(run, unknown=(FAILED,))


def _explained(judged: Judged) -> RunResult:
    """The result with what decides where low and high differ, and for a run that has no GPU with those that would do or
    with what else is open."""
    result = RunResult.of(judged)
    if judged.estimate is None:
        return result
    if judged.estimate.capacity_bytes is not None:
        return replace(result, spread=what_decides(judged))
    from lintfit.verdict.would_fit import still_open, would_fit

    found = would_fit(judged.run)
    unknown = judged.unknown if found else tuple(dict.fromkeys((*judged.unknown, *still_open(judged.run))))
    return replace(result, would_fit=found, unknown=unknown)


def new_workspace(paths: Sequence[Path], options: Options, changes: Changes | None = None) -> Workspace:
    """A workspace that writes below the roots of these paths alone; standard input is the file that it stands for."""
    below = roots_of(paths, options)
    named = () if options.as_found or changes is not None else paths
    if options.stdin is None or options.stdin_filename is None:
        return Workspace(below=below, staged=changes.staged if changes is not None else None, trusted=named)
    text = decode(options.stdin_filename, options.stdin).text
    return Workspace(overlay={options.stdin_filename: text}, below=below)


def _found(paths: Sequence[Path], options: Options, changes: Changes | None = None) -> FoundFiles:
    """The files below the paths, and the one whose text comes from standard input."""
    if changes is not None:
        # Where nothing has changed, there is nothing to look for.
        found = discover(paths if changes else (), replace(options, as_found=True))
        return replace(found, changes=changes)
    found = discover(paths, options)
    name = options.stdin_filename
    if name is None or options.stdin is None:
        return found
    return replace(found, files=tuple(dict.fromkeys((*found.files, name))), named=found.named | {name})


def _with_readers(judged: RunResult, runs: Sequence[Run]) -> RunResult:
    """The result with the other runs that its plan touches: what fits one may be slow for another.

    The other commands of a launch script are none: a plan that changed what they take as well is not written.
    """
    if judged.plan is None:
        return judged
    origin = judged.run.origin
    edited = {step.path for step in judged.plan.steps} - ({origin.path} if origin.kind == "launch" else set())
    others = [
        run
        for run in runs
        if run.id != judged.run.id and run.origin.kind != "config" and edited & {each.path for each in run.documents}
    ]
    return replace(judged, plan=replace(judged.plan, readers=tuple(run.id for run in others)))


_NOT_ALL_FIXED = "not all was fixed, as the fixes of one check may take only so long: run it again"
_TOO_LONG = (
    "all plans of one check may take only so long (lintfit fit FILE, or a check of that file, looks for its own)"
)
_UNCONFIRMED = "confirming all fixes of one check may take only so long"


def _too_large(document: Document) -> str:
    """Why a file of a run is not read as often as looking for a plan takes; empty where it is."""
    most = MAX_PLANNED[document.kind]
    if len(document.text) > most:
        return f"{document.path.as_posix()} is larger than {most >> 10} KiB"
    if document.text.count("\n") > MAX_PLANNED_LINES:
        return f"{document.path.as_posix()} has more than {MAX_PLANNED_LINES} lines"
    return ""


@frozen(eq=False)
class _Uses:
    """Which runs have read a document."""

    parts: Mapping[Document, tuple[Run, ...]]
    opened: frozenset[Document]
    """What scripts open themselves."""
    trained: frozenset[Document] | None
    """What runs that train are of, and not only those of a library's examples; None where none train."""

    @classmethod
    def of(cls, runs: Sequence[Run], workspace: Workspace) -> _Uses:
        parts: dict[Document, dict[int, Run]] = {}
        for run in runs:
            for document in run.documents:
                parts.setdefault(document, {})[id(run)] = run
        trains = [run for run in runs if run.origin.kind != "config"]
        started = [run for run in trains if not is_example_of_copy(run.origin.path, workspace)]
        return cls(
            {document: tuple(found.values()) for document, found in parts.items()},
            frozenset(document for run in runs for document in run.opened),
            frozenset(each for run in started for each in (*run.documents, *run.opened)) if trains else None,
        )


@frozen(eq=False)
class _Checked:
    result: CheckResult
    loaded: Loaded
    documents: tuple[Document, ...]
    everywhere: tuple[RunResult, ...]
    """The runs that are told of, and those that share files with them."""
    unplanned: bool
    """Whether there are runs for which no plan was looked for to the end, as that would take too long."""


class _Pass:
    """One reading of all files, from documents to findings."""

    def __init__(
        self,
        found: FoundFiles,
        workspace: Workspace,
        options: Options,
        store: Store | None = None,
        fixing: Steps | None = None,
        confirming: Steps | None = None,
    ) -> None:
        self.found, self.workspace, self.options, self.store = found, workspace, options, store
        self.mistakes = Mistakes()
        self._fixing = fixing
        """What a pass behind the first draws from; None for the first."""
        self.confirming = confirming if confirming is not None else of_confirming()
        """What may still be spent on confirming fixes, which nobody needs for a finding."""
        self.plans = of_plans(fixing)
        """What may still be spent on plans, which nobody needs for a verdict."""
        self.unplanned: list[str] = []
        self.too_large: list[str] = []
        """Why no plan was looked for, by run: one of its files is too large to be read many times."""
        """Runs for which no plan was looked for to the end, as that would take too long."""
        self.unconfirmed: Sequence[Finding] = ()
        """Findings whose fixes were not confirmed, as that would take too long."""

    def check(self) -> _Checked:
        with self.workspace.apart(of_tree()):
            return self._check()

    def _check(self) -> _Checked:
        loaded = load(self.found, self.workspace, self.options, build if self.store is None else self.store.build)
        runs = tuple(_with_readers(self._judged(run), (*loaded.runs, *loaded.others)) for run in loaded.runs)
        documents = tuple(document for document in _documents(loaded) if self._is_shown(document))
        uses = _Uses.of(loaded.runs, self.workspace)
        findings = [finding for run in runs for finding in self._of_run(run, uses)]
        findings += [f for document in documents for f in self._file_findings(document, loaded, uses)]
        named = [document for document in documents if document.path in self.found.named]
        sifted = sift(tuple(_unique(findings)), documents, runs, self.options, loaded.others)
        reached, outside = within_reach(sifted.left, self.workspace)
        everywhere = (*runs, *self._beside(runs, loaded.others))
        confirmed, refused = self._confirmed(reached, everywhere)
        result = CheckResult(
            runs=runs,
            findings=_in_order(confirmed),
            errors=(
                *loaded.errors,
                *_problems((each for each in named if each.kind is not Kind.SHELL), NOT_READ),
                *self.mistakes.lines,
            ),
            ignored=_in_order(sifted.ignored),
            baselined=_in_order(sifted.baselined),
            notes=(
                *sifted.notes,
                *_notes(documents, named, loaded.runs),
                *(outside if self.options.fix else ()),
                *self._unplanned(runs),
                *([self.found.changes.in_words(len(loaded.others))] if self.found.changes is not None else ()),
            ),
            skipped=loaded.skipped,
            files_read=loaded.files_read,
            configs=sum(isinstance(each, DataDocument) and detect.dialect(each) is not None for each in documents),
            refused_fixes=refused + sum(run.refused_plans for run in runs),
        )
        return _Checked(result, loaded, documents, everywhere, bool(self.unplanned))

    def _beside(self, runs: Sequence[RunResult], others: Sequence[Run]) -> Iterator[RunResult]:
        """The runs that nobody asks about and that share a file with one that is: no fix may make them worse."""
        shared = {document for judged in runs for document in judged.run.documents}
        for run in others:
            if shared.intersection(run.documents):
                yield RunResult.of(_judged(run, self.mistakes))

    def _confirmed(self, findings: Sequence[Finding], runs: Sequence[RunResult]) -> tuple[tuple[Finding, ...], int]:
        """The findings, and how many of them have lost a fix that does not come out as it claims."""
        if not any(finding.fix is not None for finding in findings):
            return tuple(findings), 0
        from lintfit.fit.confirm import Confirmation

        confirmation = Confirmation(runs, self.workspace, self.options, self.mistakes.end_at, self.confirming)
        if self.store is None:
            confirmed = confirmation.of(findings)
            self.unconfirmed = confirmation.unconfirmed
            return confirmed.findings, confirmed.refused
        from lintfit.commands.kept.fixes import confirmed_by_parts

        after = confirmed_by_parts(findings, runs, confirmation, self.store)
        self.unconfirmed = confirmation.unconfirmed
        # Nothing that hangs on how much others have spent is kept for the next check.
        self.workspace.ambiguous |= {self.workspace.located(each.place.document.path) for each in self.unconfirmed}
        lost = sum(one.fix is not None and two.fix is None for one, two in zip(findings, after, strict=True))
        return after, lost - len(self.unconfirmed)

    def _is_shown(self, document: Document) -> bool:
        """Whether findings may speak of a document: of what lies outside only where the user names it."""
        return document.path in self.found.named or self.workspace.is_inside(document.path)

    def _judged(self, run: Run) -> RunResult:
        if self.store is not None:
            return self.store.judged(run, lambda: self._judged_now(run))
        return self._judged_now(run)

    def _judged_now(self, run: Run) -> RunResult:
        if self._fixing is not None:
            self._fixing.take(OF_RUN)
        judged = _judged(run, self.mistakes)
        with self.mistakes.end_at(run.id):
            return self._planned(_explained(judged))
        return RunResult.of(judged)  # with its verdict, and without a plan

    def _planned(self, judged: RunResult) -> RunResult:
        capped = judged.verdict is Verdict.TIGHT and judged.longest is not None
        short = judged.verdict is Verdict.DOES_NOT_FIT or capped
        if not short or judged.run.doubtful or judged.run.count_open:
            return judged  # a plan cannot be confirmed where settings are not known
        if judged.beyond is not None or self._only_shown(judged.run):
            return judged  # the rule that speaks of it says what to do; nothing starts it as the script is
        if breaks_the_command(RunContext(judged.run, judged.estimate)) or starts_too_many(judged.run):
            return judged
        if vllm_does_not_start(judged.run):
            return judged  # it stops before it trains, whatever the training takes
        if judged.run.origin.index >= MOST_PLANS:
            return judged
        large = next(filter(None, map(_too_large, judged.run.documents)), "")
        if large:
            self.too_large.append(f"{judged.run.id}: no plan was looked for: {large}")
            return judged
        with self.workspace.apart(self.plans):
            planned = self._with_plan(judged)
        if not self.plans.all.spent:
            return planned
        # Nothing that hangs on how much others have spent is kept for the next check.
        self.workspace.ambiguous.add(self.workspace.located(judged.run.origin.path))
        self.unplanned.append(judged.run.id)
        return judged

    def _with_plan(self, judged: RunResult) -> RunResult:
        """The result with its plan, and with all kinds of plans where they are asked for."""
        if self.plans.all.taken > OF_PLANS:
            self.plans.all.spent = True
        if not self.plans.all.take(OF_PLAN):
            return judged
        from lintfit.fit.long_samples import unasked
        from lintfit.fit.planner import plan

        outcome = plan(judged.run, self.workspace, self.options, errors_of)
        planned = replace(
            judged,
            plan=unasked(judged.run, outcome.plan),
            rejected=outcome.rejected,
            shortfall=outcome.shortfall,
            refused_plans=outcome.refused,
        )
        if not self.options.show_plans or judged.run.origin.index >= MOST_LISTED:
            return planned
        if not self.plans.all.take(OF_ALL_KINDS):
            return planned
        from lintfit.fit.alternatives import alternatives

        found = alternatives(judged.run, self.workspace, self.options, outcome, errors_of)
        return replace(planned, alternatives=found.plans)

    def _unplanned(self, results: Iterable[RunResult]) -> Iterator[str]:
        """Lines that say for which files not all plans were looked for."""
        short = (each.run.origin for each in results if each.verdict is Verdict.DOES_NOT_FIT)
        for path in dict.fromkeys(origin.path for origin in short if origin.index >= MOST_PLANS):
            yield f"{path.as_posix()}: plans were looked for in its first {MOST_PLANS} launches"
        yield from self.too_large
        if self.unplanned:
            first, *others = self.unplanned
            more = f" and {len(others)} more" if others else ""
            yield f"no plan was looked for to the end for {first}{more}: {_TOO_LONG}"
        if self.unconfirmed:
            place, left = self.unconfirmed[0].place, len(self.unconfirmed) - 1
            line = place.document.position(place.span.start).line
            more = f" and {left} more" if left else ""
            yield f"no fix was confirmed for {place.document.path.as_posix()}:{line}{more}: {_UNCONFIRMED}"

    def _run_findings(self, judged: RunResult) -> Iterable[Finding]:
        if self.store is not None:
            return self.store.run_findings(judged, lambda: self._run_findings_now(judged))
        return self._run_findings_now(judged)

    def _of_run(self, judged: RunResult, uses: _Uses) -> Iterable[Finding]:
        found, origin = self._run_findings(judged), judged.run.origin
        alone = [each for each in judged.run.documents if origin.kind == "config" and each.path == origin.path]
        return map(as_of_unused, found) if any(self._is_unused(each, uses) for each in alone) else found

    def _run_findings_now(self, judged: RunResult) -> Iterable[Finding]:
        found = self._all_run_findings(judged)
        return map(as_of_unused, found) if self._only_shown(judged.run) else found

    def _only_shown(self, run: Run) -> bool:
        return only_shown(run, self.workspace, run.origin.path in self.found.named)

    def _all_run_findings(self, judged: RunResult) -> Iterator[Finding]:
        context = RunContext(
            judged.run,
            judged.beyond.rank if judged.beyond is not None else judged.estimate,
            judged.plan,
            judged.rejected,
            judged.shortfall,
            judged.scaling,
            judged.by_version,
            judged.longest,
            judged.beyond,
        )
        yield from run_run_checks(context, apart=self.mistakes.end_at)

    def _file_findings(self, document: Document, loaded: Loaded, uses: _Uses) -> Iterable[Finding]:
        found = self._all_file_findings(document, loaded, uses)
        return map(as_of_unused, found) if self._is_unused(document, uses) else found

    def _is_unused(self, document: Document, uses: _Uses) -> bool:
        """Whether a config that nobody named is of none of the runs that there are."""
        if document.path in self.found.named or not isinstance(document, DataDocument):
            return False
        return uses.trained is not None and document not in uses.trained

    def _all_file_findings(self, document: Document, loaded: Loaded, uses: _Uses) -> Iterable[Finding]:
        part_of = uses.parts.get(document, ())
        named = document.path in self.found.named
        opened = document in uses.opened
        own = opened and document in loaded.documents and not self.workspace.why_not_changed(document.path)
        if opened and not own and not any(is_config_of(document, run) for run in loaded.runs):
            return ()  # data of a script's own, whatever it looks like
        if self.store is None:
            return self._file_findings_now(document, part_of, opened)
        # What the parser says of functions hangs on who has looked at them.
        here = self.workspace.here.name_of(document)
        about = (self.workspace.located(document.path), document.path, document.kind, document.problems, here)
        first, watched = reader_of(document, part_of), Watched(part_of)
        name = ("file", *about, named, opened, first.origin if first is not None else None)
        make = partial(self._file_findings_now, document, watched, opened)
        return self.store.findings(name, part_of, (document,), make, partial(watched.seen, first))

    def _file_findings_now(self, document: Document, part_of: tuple[Run, ...], opened: bool) -> Iterator[Finding]:
        named = document.path in self.found.named
        with self.mistakes.end_at(document.path.as_posix()):
            context = FileContext(document, source_of(document, part_of), part_of, named, self.workspace)
            for finding in run_file_checks(context, apart=self.mistakes.end_at):
                # A script that opens the file itself may ask for any of its keys.
                yield without_fix(finding) if opened else finding


_SAID = {SYNTAX_ERROR: "syntax error", NOT_READ: "not read"}


def _problems(documents: Iterable[Document], *codes: str) -> Iterator[str]:
    """What keeps documents from being read, as far as it is of these sorts: one line each."""
    for document in documents:
        for problem in document.problems:
            if problem.code in codes:
                place = document.position(problem.span.start)
                where = f"{document.path.as_posix()}:{place.line}:{place.column}"
                yield f"{where}: {_SAID[problem.code]}: {problem.detail}"


def _notes(documents: Iterable[Document], named: Collection[Document], runs: Sequence[Run]) -> Iterator[str]:
    """Lines about shell scripts and YAML files that a search found and that no launch names: no rule speaks of their
    syntax, and scripts in Python are listed as skipped. What tree-sitter alone refuses is no more than a note where the
    file is named, too, for the commands around it are read."""
    broken = {document for run in runs for document in run.broken}
    named = frozenset(named)
    for document in documents:
        if document not in named and document not in broken and document.kind in (Kind.SHELL, Kind.YAML):
            yield from _problems([document], SYNTAX_ERROR, NOT_READ)
        elif document in named and document.kind is Kind.SHELL:
            yield from _problems([document], NOT_READ)


def _documents(loaded: Loaded) -> tuple[Document, ...]:
    """Every document once, found ones first, then those that runs pulled in."""
    pulled = (document for run in loaded.runs for document in run.documents)
    return tuple({id(document): document for document in (*loaded.documents, *pulled)}.values())


def _in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=_reading_order))


def _reading_order(finding: Finding) -> tuple[str, int, str]:
    place = finding.place
    return place.document.path.as_posix(), place.document.in_file(place.span.start), finding.code


def _unique(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Each thing once, also where several runs share the file that it stands in."""
    seen: set[tuple[object, ...]] = set()
    for finding in findings:
        key = (finding.rule, finding.place.document.path, finding.place.span, finding.message)
        if key not in seen:
            seen.add(key)
            yield finding


def _fix(
    found: FoundFiles, workspace: Workspace, options: Options, first: _Checked
) -> tuple[_Checked, dict[Path, str]]:
    """Mend, read again, and so on until nothing more can be mended: what is left, and the new texts."""
    from lintfit.fit.confirm import touched

    texts: dict[Path, str] = {}
    fixed: list[Finding] = []
    checked = first
    mistakes, work, confirming = Mistakes(), of_fixing(), of_confirming()
    for _ in range(MAX_PASSES):
        mended = _mend(checked, workspace.with_overlay(texts), options, mistakes, work)
        if not mended.fixed:
            break
        texts.update(mended.texts)
        fixed.extend(mended.fixed)
        after = workspace.with_overlay(texts)
        checked = _Pass(_with_new(found, texts), after, options, fixing=work, confirming=confirming).check()
        if work.spent:
            break
    before = {judged.run.id: judged.estimate for judged in first.result.runs}
    runs = tuple(
        replace(judged, before=before.get(judged.run.id)) if touched(judged.run, texts) else judged
        for judged in checked.result.runs
    )
    errors = tuple(dict.fromkeys((*checked.result.errors, *mistakes.lines)))
    left = work.spent and (checked.unplanned or _fixable(checked.result.findings, options))
    notes = (*checked.result.notes, *([_NOT_ALL_FIXED] if left else ()))
    result = replace(checked.result, runs=runs, fixed=tuple(fixed), changed=_counts(fixed), errors=errors, notes=notes)
    return replace(checked, result=result), texts


def _add_ignores(
    found: FoundFiles, workspace: Workspace, options: Options, checked: _Checked, texts: Mapping[Path, str]
) -> tuple[_Checked, dict[Path, str]]:
    """Write comments that ignore what is left, and check again what they make of it."""
    from lintfit.suppression.adding import add_ignores

    added = add_ignores(checked.result.findings, workspace, options)
    after = {**texts, **added.texts}
    result = checked.result
    if added.texts:
        again = _Pass(_with_new(found, after), workspace.with_overlay(after), options).check()
        # A comment above a launch line moves it, and with it the name of the run: the order stays.
        runs = tuple(replace(new, before=old.before) for new, old in zip(again.result.runs, result.runs, strict=True))
        result = replace(again.result, runs=runs, fixed=result.fixed, changed=result.changed)
        checked = again
    return replace(checked, result=replace(result, notes=(*result.notes, *added.notes))), after


def _count(file: Path, checked: _Checked, options: Options, below: Sequence[Path]) -> _Checked:
    """Write the baseline; what it counts is no longer reported."""
    from lintfit.suppression.baseline import write

    parts = write(file, checked.result.findings, [document.path for document in checked.documents], options, below)
    result = replace(
        checked.result, findings=parts.left, baselined=parts.known, notes=(*checked.result.notes, *parts.notes)
    )
    return replace(checked, result=result)


def _with_new(found: FoundFiles, texts: Mapping[Path, str]) -> FoundFiles:
    """Files that a fix has made are looked at, too."""
    new = tuple(path for path in texts if path not in found.files and not door.exists(path))
    return replace(found, files=(*found.files, *new))


def _counts(fixed: Iterable[Finding]) -> dict[Path, int]:
    counts: dict[Path, int] = {}
    for finding in fixed:
        for path in {edit.path for edit in finding.fix.edits} if finding.fix is not None else ():
            counts[path] = counts.get(path, 0) + 1
    return counts


def _delivered(result: CheckResult, texts: Mapping[Path, str], workspace: Workspace, options: Options) -> CheckResult:
    if options.stdin_filename is not None:
        original = decode(options.stdin_filename, options.stdin or b"")
        text = texts.get(options.stdin_filename, original.text)
        result = replace(result, fixed_stdin=encode(original, text).decode())
    if options.diff:
        from lintfit.documents.edits import shown_diff
        from lintfit.fit.confirm import text_of

        diffs = (shown_diff(path, text_of(path, workspace), text) for path, text in texts.items())
        return replace(result, diff="".join(diffs))
    texts = {path: text for path, text in texts.items() if path != options.stdin_filename}
    if texts:
        workspace.write(texts)
    return result


def _mend(checked: _Checked, workspace: Workspace, options: Options, mistakes: Mistakes, work: Steps) -> Mending:
    """Apply the fixes of one pass that neither overlap nor break anything, the plans first."""
    from lintfit.fit.confirm import Confirmation
    from lintfit.fit.mending import Mending

    mending = Mending(Confirmation(checked.everywhere, workspace, options, mistakes.end_at, work), workspace)
    mending.make(_fixable(checked.result.findings, options))
    return mending


def _fixable(findings: Sequence[Finding], options: Options) -> list[Finding]:
    allowed = {Applicability.SAFE, *([Applicability.UNSAFE] if options.unsafe_fixes else [])}
    mendable = [f for f in findings if f.fix is not None and f.fix.edits and f.fix.applicability in allowed]
    return sorted(mendable, key=lambda finding: finding.rule != "does-not-fit")
