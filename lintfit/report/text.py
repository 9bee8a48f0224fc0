"""The report for people: a block for each run that there is something to say of, then what is left in a line each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from lintfit.findings.model import Finding, Severity
from lintfit.findings.results import CheckResult, RunResult
from lintfit.memory.result import Verdict
from lintfit.report import Line, View, crowd, shown_path
from lintfit.report.alike import alike, alike_lines
from lintfit.report.block import block, in_short
from lintfit.report.closing import closing_line, fix_line, not_judged
from lintfit.report.details import assumption_lines, detailed
from lintfit.report.folding import VERDICTS, folded
from lintfit.report.styled import plain, show, wrapped
from lintfit.report.summary import fixed_lines, hidden_lines, is_config, judged, plural, statistics_lines, without_gpu

MOST_BLOCKS = 4
"""Runs that a report shows whole; of more than these the further ones take a line or two each."""


def render(result: CheckResult, view: View) -> str:
    """The report as text, coloured where the view asks for it."""
    return show(report_lines(result, view), view)


def report_lines(result: CheckResult, view: View) -> list[Line]:
    """The whole report as styled lines."""
    last = _last(result, view)
    if view.quiet:
        return last
    blocks: list[list[Line]] = []
    if view.show_fixes and result.fixed:
        blocks.append(_unstyled(fixed_lines(result.fixed, view)))
    if view.statistics:
        blocks.append(_unstyled(statistics_lines(result, view)))
    else:
        owners = _owners(result)
        blocks += _runs(result, owners, view)
        blocks += _of_files(_scattered(result, owners, view), crowd.is_crowd(result, view), view)
    blocks += [_notes(result, view), last]
    return [line for block in blocks if block for line in [*block, []]][:-1]


def _unstyled(lines: Sequence[str]) -> list[Line]:
    return [[(line, "")] for line in lines]


def _owners(result: CheckResult) -> dict[int, str]:
    """The run by which each finding is told: its own, else the first that has the file that it stands in."""
    runs = [run.run for run in result.runs]
    names = {run.id for run in runs}
    of_document = {id(document): run.id for run in reversed(runs) for document in run.documents}
    found = {}
    for finding in result.findings:
        owner = finding.run if finding.run in names else of_document.get(id(finding.place.document))
        if owner is not None:
            found[id(finding)] = owner
    return found


def _runs(result: CheckResult, owners: Mapping[int, str], view: View) -> Iterator[list[Line]]:
    """The runs: blocks, and between them those in a row of which a line says it all."""
    several = len(result.runs) > 1
    whole, further = _told_whole(result, view)
    together = without_gpu(result, view)
    quiet, brief = crowd.quiet_ones(result, view), crowd.in_brief(result, view)
    elsewhere, blocks = {id(run) for run in [*quiet, *brief]}, {id(run) for run in whole}
    apart = [run for run in result.runs if id(run) not in elsewhere]
    of_run: dict[str, list[Finding]] = {}
    for finding in result.findings:
        of_run.setdefault(owners.get(id(finding), ""), []).append(finding)
    for is_block, group in groupby(apart, key=lambda run: id(run) in blocks):
        runs = [(run, of_run.get(run.run.id, [])) for run in group]
        if is_block:
            for run, own in runs:
                yield from _whole(run, own, several, view)
        else:
            short = [pair for pair in runs if all(pair[0] is not each for each in together)]
            # Of many runs the findings are told once for all of them, with those of the files.
            yield _in_short([(run, []) for run, _ in short] if crowd.is_crowd(result, view) else short, view)
    if together:
        from lintfit.report.without_gpu import by_usual_gpu

        yield by_usual_gpu(together, view)
    are, them = ("is", "it") if further == 1 else ("are", "them")
    told = f"{plural(further, 'further run')} {are} told in short: `lintfit check FILE` or --verbose shows {them} whole"
    said = wrapped([], told, view.width, 2, "note") if further else []
    if lines := [*crowd.by_file(brief, view), *crowd.together(quiet, view), *said]:
        yield lines


def _told_whole(result: CheckResult, view: View) -> tuple[list[RunResult], int]:
    """The runs that get a block, and how many more would."""
    needing = [run for run in result.runs if _needs_block(run, len(result.runs) > 1)]
    if crowd.in_brief(result, view):
        return [], 0
    most = crowd.BLOCKS if crowd.is_crowd(result, view) else MOST_BLOCKS
    whole = needing if view.verbose else needing[:most]
    return whole, len(needing) - len(whole)


def _scattered(result: CheckResult, owners: Mapping[int, str], view: View) -> list[Finding]:
    """Findings that no block or line of a run is above: those of files, and of runs without a verdict."""
    if view.verbose:
        return [finding for finding in result.findings if id(finding) not in owners]
    whole, _ = _told_whole(result, view)
    in_lines = [run for run in result.runs if not run.is_unknown or run.would_fit]
    crowded = crowd.is_crowd(result, view)
    told = {run.run.id for run in ([] if crowded else in_lines)} - {run.run.id for run in without_gpu(result, view)}
    told |= {run.run.id for run in whole}
    least = Severity.WARNING if crowded else Severity.INFO
    return [
        finding
        for finding in result.findings
        if finding.severity >= least
        and (id(finding) not in owners or (owners[id(finding)] not in told and finding.rule not in VERDICTS))
    ]


def _needs_block(run: RunResult, several: bool) -> bool:
    """Whether there is more to say of a run than a line; of one alone there is, but for a config on its own."""
    if not several:
        return not is_config(run)
    has_more = run.plan is not None or run.before is not None or bool(run.alternatives)
    return has_more or run.verdict is Verdict.DOES_NOT_FIT


def _whole(run: RunResult, findings: Sequence[Finding], several: bool, view: View) -> Iterator[list[Line]]:
    yield block(run, findings, view, compact=several)
    if run.alternatives:
        yield _alternatives(run, view)
    if view.verbose:
        yield assumption_lines(run, view)
        yield from detailed(findings, run, view)


def _in_short(runs: Sequence[tuple[RunResult, Sequence[Finding]]], view: View) -> list[Line]:
    """A line for each run that has a verdict, one for launches of one file that come to the same; findings below it."""
    groups: dict[tuple[str, str], list[tuple[RunResult, Sequence[Finding]]]] = {}
    for run, own in runs:
        path, said = run.run.id.rpartition(":")[0], plain(in_short(run, view)).removeprefix(run.run.id)
        # A recipe alone has no line: files stay apart, each with its own plan.
        groups.setdefault((path, said) if path and said else ("", run.run.id), []).append((run, own))
    lines: list[Line] = []
    for group in groups.values():
        first = group[0][0]
        lines += in_short(first, view, [run.run.id.rpartition(":")[2] for run, _ in group[1:]])
        lines += _of_short(group, view)
    return lines


def _of_short(group: Sequence[tuple[RunResult, Sequence[Finding]]], view: View) -> list[Line]:
    """The findings of runs that a line tells; of those that have none they are told with the files'."""
    if view.verbose:
        full = [each for run, own in group for each in detailed(own, run, view)]
        return [line for each in full for line in [*each, []]]
    own = [each for run, found in group for each in folded(run, found).others if each.rule not in VERDICTS]
    told = not group[0][0].is_unknown or group[0][0].would_fit
    return alike_lines(own, shown_path, view, 2) if told else []


def _alternatives(run: RunResult, view: View) -> list[Line]:
    """All kinds of plans, where they were asked for."""
    from lintfit.report.plans import plan_table

    return [
        [("plans: ", "good"), ("all kinds that fit, best first (`lintfit fit --apply N` writes one)", "")],
        *plan_table(run.alternatives, view),
    ]


def _of_files(findings: Sequence[Finding], crowded: bool, view: View) -> list[list[Line]]:
    """Findings that belong to no run, or to none that is told, file by file; many kinds of warnings by their rules."""
    if view.verbose:
        return detailed(findings, None, view)
    in_order = sorted(findings, key=lambda each: (shown_path(each.place.document.path), each.place.span))
    warnings = [each for each in in_order if each.severity is Severity.WARNING]
    if crowded and len(alike(warnings)) > crowd.MANY:
        worse = [each for each in in_order if each.severity > Severity.WARNING]
        return [[*alike_lines(worse, shown_path, view, 0), *crowd.warnings_by_rule(warnings, view)]]
    return [alike_lines(in_order, shown_path, view, 0)]


def _notes(result: CheckResult, view: View) -> list[Line]:
    """What was not judged or not read, and what is not shown."""
    lines = [line for text in result.notes for line in wrapped([], text, view.width, 2)]
    most = crowd.REASONS if crowd.is_crowd(result, view) else None
    if not view.statistics:
        lines += not_judged(result, len(result.runs) == 1, view, most)
    further = [*hidden_lines(result), *fix_line(result)]
    return lines + [line for text in further for line in wrapped([], text, view.width, 2)]


def _last(result: CheckResult, view: View) -> list[Line]:
    line = closing_line(result, view)
    worst = max((finding.severity for finding in result.findings), default=None)
    good = worst in (None, Severity.INFO) and not result.errors and judged(result)
    return wrapped([], line, view.width, 0, "good" if good else "note") if line else []
