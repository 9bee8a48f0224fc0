"""Workflow commands of GitHub Actions: each finding annotates its line, and stays readable in the log."""

from __future__ import annotations

from lintfit.errors import defused
from lintfit.findings.model import Finding, Severity
from lintfit.findings.results import CheckResult
from lintfit.report import View, clean, in_cell, shown_path
from lintfit.report.summary import summary_lines

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(result: CheckResult, view: View) -> str:
    """One ``::error …::message`` line per finding, then the summary."""
    lines = [_command(finding) for finding in result.findings]
    return "".join(f"{line}\n" for line in [*lines, *map(defused, summary_lines(result, view))])


def _command(finding: Finding) -> str:
    place = finding.place
    start = place.document.position(place.span.start)
    end = place.document.position(place.span.end)
    path = clean(shown_path(place.document.path))
    properties = {
        "title": f"lintfit ({finding.rule} {finding.code})",
        "file": path,
        "line": str(start.line),
        "col": str(start.column),
        "endLine": str(end.line),
    }
    if end.line == start.line:
        properties["endColumn"] = str(end.column)
    said = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    said_where = f"{finding.rule} ({finding.code}) {clean(finding.message)}{in_cell(place)}"
    message = f"{path}:{start.line}:{start.column}: {said_where}"
    if advice := finding.help or (finding.fix.message if finding.fix else ""):
        message += f"\n  help: {clean(advice)}"
    return f"::{_COMMANDS[finding.severity]} {said}::{_data(message)}"


def _data(text: str) -> str:
    """As the runner unescapes the message of a command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
