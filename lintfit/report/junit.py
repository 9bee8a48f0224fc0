"""JUnit's XML: a suite per file, a case per finding that fails unless it only informs, a skipped one for what was not
judged."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from lintfit.findings.model import Finding, Severity
from lintfit.findings.results import CheckResult
from lintfit.report import View, clean, in_cell, shown_path
from lintfit.report.summary import counts_lines, judged, skipped_files, unknown_runs


def render(result: CheckResult, view: View) -> str:
    """The findings as failures, what was not judged as skipped; a check without either is one test that passed.

    One that had nothing to judge has not: its one test is skipped, too.
    """
    by_path = sorted(result.findings, key=lambda finding: shown_path(finding.place.document.path))
    suites = [
        _suite(path, list(group))
        for path, group in groupby(by_path, key=lambda finding: shown_path(finding.place.document.path))
    ]
    skipped = [*unknown_runs(result), *skipped_files(result)]
    if not (suites or skipped or judged(result)):
        skipped = [("lintfit", counts_lines(result, view)[0] if not result.errors else "no file could be read")]
    if skipped:
        suites.append(_not_judged(skipped))
    if not suites:
        suites = [
            '  <testsuite name="lintfit" tests="1" failures="0">\n    <testcase name="lintfit"/>\n  </testsuite>\n'
        ]
    found, failed = len(result.findings), _failures(result.findings)
    counts = f'tests="{max(found + len(skipped), 1)}" failures="{failed}" skipped="{len(skipped)}"'
    head = f'<testsuites name="lintfit" {counts}>'
    return f'<?xml version="1.0" encoding="utf-8"?>\n{head}\n{"".join(suites)}</testsuites>\n'


def _not_judged(pairs: Sequence[tuple[str, str]]) -> str:
    cases = "".join(
        f"    <testcase name={_quoted(name)}>\n      <skipped message={_quoted(reason)}/>\n    </testcase>\n"
        for name, reason in pairs
    )
    counts = f'tests="{len(pairs)}" failures="0" skipped="{len(pairs)}"'
    return f'  <testsuite name="lintfit" {counts}>\n{cases}  </testsuite>\n'


def _suite(path: str, findings: Sequence[Finding]) -> str:
    cases = "".join(_case(path, finding) for finding in findings)
    counts = f'tests="{len(findings)}" failures="{_failures(findings)}"'
    return f"  <testsuite name={_quoted(path)} {counts}>\n{cases}  </testsuite>\n"


def _case(path: str, finding: Finding) -> str:
    at = finding.place.document.position(finding.place.span.start)
    name = _quoted(f"{finding.rule} {finding.code} ({at.line}:{at.column})")
    message = f"{finding.message}{in_cell(finding.place)}"
    place = f"{path}:{at.line}:{at.column}: {finding.severity} {finding.rule} ({finding.code}) {message}"
    said = (
        f"<system-out>{_escaped(place)}</system-out>"
        if finding.severity is Severity.INFO
        else f'<failure type="{finding.severity}" message={_quoted(finding.message)}>{_escaped(place)}</failure>'
    )
    return (
        f'    <testcase name={name} classname={_quoted(path)} file={_quoted(path)} line="{at.line}">\n'
        f"      {said}\n"
        f"    </testcase>\n"
    )


def _failures(findings: Sequence[Finding]) -> int:
    """How many fail: information is said in a case that passes."""
    return sum(finding.severity is not Severity.INFO for finding in findings)


def _escaped(text: str) -> str:
    return clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("##[", "##&#91;")


def _quoted(text: str) -> str:
    return '"' + _escaped(text).replace('"', "&quot;") + '"'
